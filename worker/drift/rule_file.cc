#include "worker/drift/rule_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/evidence/canonical_json.h"
#include "common/json.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/drift/rule.h"
#include "worker/drift/rule_json.h"

namespace plumbline::drift {
namespace {

// Of its kind; the last stands for the rest.
constexpr size_t kMostViolations = 8;

absl::StatusOr<v1::Rule> Parse(absl::string_view text, absl::string_view where) {
  JsonLimits limits;
  limits.max_depth = 6;
  PLUMBLINE_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(text, where, limits));
  return RuleFromJson(json, where);
}

nlohmann::json WithDigest(const v1::Rule& rule) {
  nlohmann::json json = RuleToJson(rule);
  json["sha256"] = rule.sha256();
  return json;
}

// `text`, which is JSON, without white space between its tokens.
std::string Tokens(absl::string_view text) {
  std::string tokens;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!in_string && absl::ascii_isspace(text[i])) continue;
    tokens += text[i];
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      tokens += text[++i];
    } else if (text[i] == '"') {
      in_string = !in_string;
    }
  }
  return tokens;
}

// Two spellings of one number read the same and have one digest. Whoever changed a digit must not
// be told that nothing changed.
absl::Status CheckSpelling(const v1::Rule& rule, absl::string_view text, absl::string_view where) {
  const std::string canonical = CanonicalJson(WithDigest(rule));
  const std::string tokens = Tokens(text);
  if (tokens == canonical) return absl::OkStatus();
  const size_t at =
      std::mismatch(tokens.begin(), tokens.end(), canonical.begin(), canonical.end()).first -
      tokens.begin();
  const size_t from = at < 40 ? 0 : at - 40;
  return FieldError(where, absl::StrCat("is not in canonical form: has ",
                                        Quoted(absl::string_view(tokens).substr(from, 60)),
                                        " where the canonical form has ",
                                        Quoted(absl::string_view(canonical).substr(from, 60))));
}

std::vector<std::string> TensorNames(const v1::Rule& rule) {
  std::vector<std::string> names;
  for (const v1::Rule::TensorBound& tensor : rule.tensors()) names.push_back(tensor.name());
  return names;
}

class Checker {
 public:
  Checker(const v1::Rule& rule, absl::string_view where) : rule_(rule), where_(where) {}

  absl::Status Check() {
    CheckNames();
    if (rule_.origin() == v1::RULE_ORIGIN_FROZEN) CheckFrozen();
    const std::string digest = RuleSha256(rule_);
    if (rule_.sha256() != digest) {
      Add("sha256",
          absl::StrCat(rule_.sha256().empty() ? std::string("is missing")
                                              : absl::StrCat("is ", Quoted(rule_.sha256())),
                       ", the content's is ", Quoted(digest),
                       "; `plumbline rule seal` makes a changed rule a valid manual one"));
    }
    return FieldErrors(violations_);
  }

 private:
  void Add(absl::string_view field, std::string description) {
    violations_.push_back({absl::StrCat(where_, ": ", field), std::move(description)});
  }

  void CheckNames() {
    const std::string digest = TensorNamesSha256(TensorNames(rule_));
    if (rule_.binds().tensor_names_sha256() == digest) return;
    Add("binds: tensor_names_sha256",
        absl::StrCat("is ", Quoted(rule_.binds().tensor_names_sha256()),
                     ", that of the names under tensors is ", Quoted(digest)));
  }

  void CheckFrozen() {
    const int kept = static_cast<int>(
        std::count_if(rule_.providers().begin(), rule_.providers().end(),
                      [](const v1::RuleProvider& provider) { return provider.kept(); }));
    if (kept < kLeastProviders) {
      Add("providers", absl::StrCat(kept, " are kept; a frozen rule has ", kLeastProviders));
    }
    if (rule_.floors().forward() != kForwardFloor || rule_.floors().gradient() != kGradientFloor) {
      Add("floors",
          absl::StrCat("are ", CanonicalDouble(rule_.floors().forward()), " and ",
                       CanonicalDouble(rule_.floors().gradient()), "; a frozen rule has ",
                       CanonicalDouble(kForwardFloor), " and ", CanonicalDouble(kGradientFloor)));
    }
    if (const absl::StatusOr<int> tenths = SmallestTenths(rule_); !tenths.ok()) {
      Add("k", std::string(tenths.status().message()));
    } else if (rule_.k() != *tenths / 10.0) {
      Add("k", absl::StrCat("is ", CanonicalDouble(rule_.k()),
                            ", the smallest at which every provider held out passes is ",
                            CanonicalDouble(*tenths / 10.0)));
    }
    CheckBounds();
  }

  void CheckBounds() {
    size_t wrong = 0;
    for (const v1::Rule::TensorBound& tensor : rule_.tensors()) {
      const double largest =
          *std::max_element(tensor.relative_l2().begin(), tensor.relative_l2().end());
      const double bound =
          EnsembleBound(rule_.k(), largest, FloorOf(rule_.floors(), tensor.name()));
      if (tensor.bound() == bound || ++wrong > kMostViolations) continue;
      Add(absl::StrCat("tensors.", Quoted(tensor.name()), ".bound"),
          absl::StrCat("is ", CanonicalDouble(tensor.bound()), ", k * max + floor is ",
                       CanonicalDouble(bound)));
    }
    if (wrong > kMostViolations) {
      Add("tensors", absl::StrCat(wrong, " bounds in all are not k * max + floor"));
    }
  }

  const v1::Rule& rule_;
  const absl::string_view where_;
  std::vector<FieldViolation> violations_;
};

void SetLeaveOneOut(v1::Rule* rule) {
  rule->clear_leave_one_out();
  for (v1::Rule::HoldOut& held : LeaveOneOut(*rule)) *rule->add_leave_one_out() = std::move(held);
}

}  // namespace

std::string RuleFileText(const v1::Rule& rule) {
  // A tensor, a provider a line.
  return ReadableJson(WithDigest(rule), 2);
}

std::string RuleSha256(const v1::Rule& rule) { return Sha256Hex(CanonicalJson(RuleToJson(rule))); }

absl::StatusOr<v1::Rule> ReadRule(absl::string_view text, absl::string_view where) {
  PLUMBLINE_ASSIGN_OR_RETURN(v1::Rule rule, Parse(text, where));
  PLUMBLINE_RETURN_IF_ERROR(Checker(rule, where).Check());
  PLUMBLINE_RETURN_IF_ERROR(CheckSpelling(rule, text, where));
  SetLeaveOneOut(&rule);
  return rule;
}

absl::StatusOr<v1::Rule> SealRule(absl::string_view text, absl::string_view where) {
  PLUMBLINE_ASSIGN_OR_RETURN(v1::Rule rule, Parse(text, where));
  rule.set_origin(v1::RULE_ORIGIN_MANUAL);
  rule.mutable_binds()->set_tensor_names_sha256(TensorNamesSha256(TensorNames(rule)));
  rule.set_sha256(RuleSha256(rule));
  SetLeaveOneOut(&rule);
  return rule;
}

}  // namespace plumbline::drift
