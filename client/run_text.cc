#include "client/run_text.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/measure_text.h"
#include "client/table.h"

namespace plumbline::client {
namespace {

using Align = Table::Align;

constexpr size_t kShortDigest = 12;

// Enough of a run's name to type.
std::string ShortRun(const std::string& run) {
  return run.substr(0, sizeof("runs/") - 1 + kShortDigest);
}

std::string StateText(v1::RunState state) {
  return absl::AsciiStrToLower(v1::RunState_Name(state).substr(sizeof("RUN_STATE_") - 1));
}

Cell StateCell(v1::RunState state) {
  return Cell(StateText(state), state == v1::RUN_STATE_BROKEN     ? Ink::kBad
                                : state == v1::RUN_STATE_FINISHED ? Ink::kGood
                                                                  : Ink::kPlain);
}

std::string OutputDigests(const v1::StepRecord& step) {
  return absl::StrJoin(step.outputs(), "  ", [](std::string* out, const v1::TensorDigest& tensor) {
    absl::StrAppend(out, tensor.sha256().substr(0, kShortDigest));
  });
}

std::map<int32_t, const v1::StepRecord*> StepsOf(const v1::Run& run) {
  std::map<int32_t, const v1::StepRecord*> steps;
  for (const v1::StepRecord& step : run.steps()) {
    if (!step.quarantined()) steps[step.index()] = &step;
  }
  return steps;
}

// The tensors whose bytes differ; empty: none.
std::string DifferingTensors(const v1::StepRecord& a, const v1::StepRecord& b) {
  std::vector<std::string> names;
  for (int i = 0; i < std::max(a.outputs_size(), b.outputs_size()); ++i) {
    const bool both = i < a.outputs_size() && i < b.outputs_size();
    if (both && a.outputs(i).sha256() == b.outputs(i).sha256()) continue;
    names.push_back(i < a.outputs_size() ? a.outputs(i).name() : b.outputs(i).name());
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace

std::string RunTableText(const std::vector<v1::Run>& runs, const v1::ListRunsResponse& listed,
                         const Style& style) {
  Table table({{"run"},
               {"seed", Align::kRight},
               {"state"},
               {"steps", Align::kRight},
               {"size", Align::kRight},
               {"last used (UTC)"},
               {"jobs"}});
  for (const v1::Run& run : runs) {
    table.AddRow({Cell(ShortRun(run.name())),
                  Cell(absl::StrCat(run.decodes() ? "decoded " : "", run.seed())),
                  StateCell(run.state()),
                  Cell(absl::StrCat(run.saved_steps(), "/", run.total_steps())),
                  Cell(BytesText(run.size_bytes())), Cell(TimeText(run.last_use_time())),
                  Cell(absl::StrJoin(run.jobs(), ","))});
    if (!run.problem().empty()) {
      table.AddNote(absl::StrCat(style.Arrow(), " ", run.problem()), Ink::kBad);
    }
  }
  std::string total = absl::StrCat("All runs together: ", BytesText(listed.total_size_bytes()));
  if (listed.budget_bytes() > 0) {
    absl::StrAppend(&total, " of ", BytesText(listed.budget_bytes()));
  }
  return absl::StrCat(table.Render(style), total, "\n");
}

std::string RunText(const v1::Run& run, const Style& style) {
  std::string out;
  const auto fact = [&](absl::string_view label, absl::string_view value) {
    if (value.empty()) return;
    absl::StrAppend(&out, style.Paint(Ink::kFaint, label),
                    std::string(std::max<size_t>(1, 15 - label.size()), ' '), value, "\n");
  };
  fact("run", style.Paint(Ink::kStrong, run.name()));
  fact("state", StateText(run.state()));
  fact("problem", run.problem());
  fact("seed", absl::StrCat(run.seed()));
  fact("steps", absl::StrCat(run.saved_steps(), " of ", run.total_steps()));
  fact("size", BytesText(run.size_bytes()));
  fact("made", TimeText(run.create_time()));
  fact("last used", TimeText(run.last_use_time()));
  fact("jobs", absl::StrJoin(run.jobs(), ", "));
  if (run.preflight()) fact("preflight", "made without a gate; not to be cited");
  fact("adopted from", run.adopted_from());
  for (const v1::IdentityPart& part : run.identity().parts()) fact(part.name(), part.value());
  absl::StrAppend(&out, "\n");
  Table table({{"step", Align::kRight},
               {"attempt", Align::kRight},
               {"worker"},
               {"time", Align::kRight},
               {"input"},
               {"velocities: video, audio"}});
  for (const v1::StepRecord& step : run.steps()) {
    table.AddRow({Cell(absl::StrCat(step.index())), Cell(absl::StrCat(step.attempt())),
                  Cell(WorkerId(step.worker())), Cell(MillisecondsText(step.seconds() * 1e3)),
                  Cell(step.input_digest().substr(0, kShortDigest), Ink::kFaint),
                  step.quarantined() ? Cell("quarantined: its bytes are corrupt", Ink::kBad)
                                     : Cell(OutputDigests(step), Ink::kFaint)});
  }
  return absl::StrCat(out, table.Render(style));
}

std::string VerifyRunText(const std::string& run, const v1::VerifyRunResponse& verified,
                          const Style& style) {
  std::string out = absl::StrCat(run, ": ", verified.steps_checked(), " steps, ",
                                 BytesText(verified.bytes_checked()), " read and checked\n");
  if (verified.corruptions().empty()) return absl::StrCat(out, "Every byte is as it was saved.\n");
  Table table({{"step", Align::kRight}, {"tensor"}, {"saved as"}, {"found"}});
  for (const v1::VerifyRunResponse::Corruption& corruption : verified.corruptions()) {
    table.AddRow({Cell(absl::StrCat(corruption.step())), Cell(corruption.tensor(), Ink::kBad),
                  Cell(corruption.expected_sha256().substr(0, kShortDigest)),
                  Cell(corruption.found_sha256().empty()
                           ? std::string("nothing")
                           : corruption.found_sha256().substr(0, kShortDigest))});
  }
  return absl::StrCat(out, "\n", table.Render(style),
                      "\nThese are quarantined; the steps are computed again when the run is next "
                      "resumed.\n");
}

std::string RunComparisonText(const v1::Run& a, const v1::Run& b, const Style& style, bool* equal) {
  std::string out = absl::StrCat("A  ", a.name(), "\nB  ", b.name(), "\n\n");
  std::map<std::string, std::pair<std::string, std::string>> parts;
  for (const v1::IdentityPart& part : a.identity().parts()) parts[part.name()].first = part.value();
  for (const v1::IdentityPart& part : b.identity().parts()) {
    parts[part.name()].second = part.value();
  }
  Table identity({{"made differently"}, {"A"}, {"B"}});
  for (const auto& [name, values] : parts) {
    if (values.first == values.second) continue;
    identity.AddRow({Cell(name), Cell(values.first.empty() ? "-" : values.first),
                     Cell(values.second.empty() ? "-" : values.second)});
  }
  if (!identity.empty()) absl::StrAppend(&out, identity.Render(style), "\n");

  const auto steps_a = StepsOf(a);
  const auto steps_b = StepsOf(b);
  Table table({{"step", Align::kRight}, {"differs"}});
  int same = 0;
  for (int32_t step = 0; step < std::max(a.total_steps(), b.total_steps()); ++step) {
    const auto in_a = steps_a.find(step);
    const auto in_b = steps_b.find(step);
    if (in_a == steps_a.end() && in_b == steps_b.end()) continue;
    std::string difference;
    if (in_a == steps_a.end() || in_b == steps_b.end()) {
      difference = in_a == steps_a.end() ? "only B has it" : "only A has it";
    } else {
      difference = DifferingTensors(*in_a->second, *in_b->second);
    }
    if (difference.empty()) {
      ++same;
    } else {
      table.AddRow({Cell(absl::StrCat(step)), Cell(difference, Ink::kNotice)});
    }
  }
  *equal = table.empty();
  absl::StrAppend(&out, same, " steps are equal, byte for byte.\n");
  return *equal ? out : absl::StrCat(out, "\n", table.Render(style));
}

}  // namespace plumbline::client
