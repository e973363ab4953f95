#include "kernels/plugin/guards.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/plugin/fault.h"

namespace plumbline::plugin {
namespace {

constexpr size_t kLineBytes = 64;
// An overrun by a few rows, the commonest, stays within the canary.
constexpr int64_t kLeastCanaryBytes = 4096;
constexpr int64_t kMostCanaryBytes = 1 << 20;
constexpr int64_t kCanaryRows = 16;
constexpr uint8_t kCanary = 0xC5;
// In bfloat16 and float32 a NaN that no arithmetic gives.
constexpr uint8_t kPoison = 0xFF;
constexpr size_t kMaxSearches = 512;

size_t RoundUp(size_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }

int64_t ElementBytes(const Tensor& tensor) { return static_cast<int64_t>(DTypeSize(tensor.dtype)); }

// From the first element to the last, gaps included.
int64_t ExtentBytes(const Tensor& tensor) {
  if (tensor.NumElements() == 0) return 0;
  return ((tensor.batch - 1) * tensor.batch_stride + (tensor.rows - 1) * tensor.row_stride +
          tensor.width) *
         ElementBytes(tensor);
}

Region ItemRegion(const Tensor& tensor, int64_t item) {
  Region region;
  region.element_bytes = ElementBytes(tensor);
  region.data =
      static_cast<uint8_t*>(tensor.data) + item * tensor.batch_stride * region.element_bytes;
  region.rows = tensor.rows;
  region.width = tensor.width;
  region.stride = tensor.row_stride;
  return region;
}

Region ByteRegion(uint8_t* data, int64_t bytes) { return {data, 1, 1, bytes, bytes}; }

Tensor ByteTensor(void* data, size_t bytes) {
  return Tensor::Dense(data, DType::kU8, 1, 1, static_cast<int64_t>(bytes));
}

}  // namespace

Guards::Guards(const Library& library, const GuardMemory& memory, const ExecutionContext& context)
    : library_(library),
      memory_(memory),
      context_(context),
      memory_begin_(context.workspace.data()) {
  scratch_ = Take(kMaxSearches * sizeof(int64_t), 0);
}

uint8_t* Guards::Take(size_t bytes, size_t offset_in_line) {
  uint8_t* const place = counts() ? nullptr : memory_begin_ + used_ + offset_in_line;
  // Sizes are asked for before addresses are known: each may take a line more.
  used_ += RoundUp(bytes + kLineBytes);
  return place;
}

absl::Status Guards::Guard(std::string name, Use use, Tensor* tensor) {
  const int64_t extent = ExtentBytes(*tensor);
  if (extent == 0 || (!counts() && tensor->IsNull())) return absl::OkStatus();
  const int64_t row_bytes = tensor->width * ElementBytes(*tensor);
  const int64_t canary = static_cast<int64_t>(RoundUp(static_cast<size_t>(
      std::clamp(kCanaryRows * row_bytes, kLeastCanaryBytes, kMostCanaryBytes))));
  // The copy is aligned as the original is: a kernel may ask for it.
  const size_t offset = reinterpret_cast<uintptr_t>(tensor->data) % kLineBytes;
  Guarded guarded{std::move(name), use, *tensor, *tensor, nullptr, canary, extent, canary};
  guarded.begin = Take(static_cast<size_t>(2 * canary + extent), offset);
  if (counts()) return absl::OkStatus();
  guarded.copy.data = guarded.begin + canary;

  PLUMBLINE_RETURN_IF_ERROR(
      memory_.Fill(context_, guarded.begin, kCanary, static_cast<size_t>(canary)));
  PLUMBLINE_RETURN_IF_ERROR(memory_.Fill(context_, guarded.begin + canary + extent, kCanary,
                                         static_cast<size_t>(canary)));
  if (use != Use::kScratch) {
    PLUMBLINE_RETURN_IF_ERROR(
        memory_.Fill(context_, guarded.copy.data, kPoison, static_cast<size_t>(extent)));
  }
  if (use == Use::kRead) {
    for (int64_t item = 0; item < tensor->batch; ++item) {
      PLUMBLINE_RETURN_IF_ERROR(memory_.Copy(context_, ItemRegion(guarded.original, item),
                                             ItemRegion(guarded.copy, item)));
    }
  }
  *tensor = guarded.copy;
  guarded_.push_back(std::move(guarded));
  return absl::OkStatus();
}

absl::Status Guards::GuardBytes(std::string name, Use use, size_t bytes, void** data) {
  if (bytes == 0) return absl::OkStatus();
  Tensor tensor = ByteTensor(*data, bytes);
  PLUMBLINE_RETURN_IF_ERROR(Guard(std::move(name), use, &tensor));
  *data = tensor.data;
  return absl::OkStatus();
}

absl::Status Guards::Enter(absl::Span<NodeView> nodes, size_t workspace_bytes,
                           ExecutionContext* call) {
  // Outputs first: later nodes read the copies.
  Tensors written;
  for (NodeView& view : nodes) {
    written.push_back(view.output);
    const std::string name =
        nodes.size() == 1 ? "the output" : absl::StrCat("the output of ", view.node->name);
    PLUMBLINE_RETURN_IF_ERROR(
        Guard(name, view.backward ? Use::kRead : Use::kWritten, &view.output));
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    NodeView& view = nodes[i];
    const std::string of = nodes.size() == 1 ? "" : absl::StrCat(" of ", view.node->name);
    for (size_t slot = 0; slot < view.inputs.size(); ++slot) {
      Tensor& input = view.inputs[slot];
      size_t producer = 0;
      while (producer < i && (input.IsNull() || written[producer].data != input.data)) ++producer;
      if (producer < i) {
        input = nodes[producer].output;
        continue;
      }
      PLUMBLINE_RETURN_IF_ERROR(
          Guard(absl::StrCat(InputName(view.node->op, slot), of), Use::kRead, &input));
    }
    for (size_t slot = 0; slot < view.parameters.size(); ++slot) {
      PLUMBLINE_RETURN_IF_ERROR(Guard(absl::StrCat(ParameterName(view.node->op, slot), of),
                                      Use::kRead, &view.parameters[slot]));
    }
    if (counts() || view.saved != nullptr) {
      PLUMBLINE_RETURN_IF_ERROR(GuardBytes("the saved state",
                                           view.backward ? Use::kRead : Use::kWritten,
                                           view.saved_bytes, &view.saved));
    }
    if (view.backward) PLUMBLINE_RETURN_IF_ERROR(GuardGradients(of, &view));
  }
  void* workspace = nullptr;
  PLUMBLINE_RETURN_IF_ERROR([&]() -> absl::Status {
    if (workspace_bytes == 0) return absl::OkStatus();
    // Scratch has no original.
    Tensor tensor = ByteTensor(memory_begin_, workspace_bytes);
    PLUMBLINE_RETURN_IF_ERROR(Guard("the workspace", Use::kScratch, &tensor));
    workspace = tensor.data;
    return absl::OkStatus();
  }());
  *call = context_;
  call->workspace = absl::MakeSpan(static_cast<uint8_t*>(workspace), workspace_bytes);
  return absl::OkStatus();
}

absl::Status Guards::GuardGradients(const std::string& node, NodeView* view) {
  PLUMBLINE_RETURN_IF_ERROR(
      Guard(absl::StrCat("the gradient of the output", node), Use::kRead, &view->grad_output));
  for (size_t slot = 0; slot < view->grad_inputs.size(); ++slot) {
    PLUMBLINE_RETURN_IF_ERROR(
        Guard(absl::StrCat("the gradient of ", InputName(view->node->op, slot), node),
              Use::kWritten, &view->grad_inputs[slot]));
  }
  for (size_t slot = 0; slot < view->grad_parameters.size(); ++slot) {
    PLUMBLINE_RETURN_IF_ERROR(
        Guard(absl::StrCat("the gradient of ", ParameterName(view->node->op, slot), node),
              Use::kWritten, &view->grad_parameters[slot]));
  }
  return absl::OkStatus();
}

void Guards::AddSearches(size_t index, std::vector<Finding>* findings) const {
  const Guarded& guarded = guarded_[index];
  const auto add = [&](Search search, decltype(Finding::what) what, int64_t item) {
    if (search.region.rows * search.region.width == 0) return;
    findings->push_back({search, index, what, item});
  };
  const auto not_byte = [](Region region, uint8_t byte) {
    Search search;
    search.region = region;
    search.byte = byte;
    return search;
  };
  uint8_t* const data = guarded.begin + guarded.canary_bytes;
  add(not_byte(ByteRegion(guarded.begin, guarded.canary_bytes), kCanary), Finding::kBefore, 0);
  add(not_byte(ByteRegion(data + guarded.extent_bytes, guarded.after_bytes), kCanary),
      Finding::kAfter, 0);
  if (guarded.use == Use::kScratch) return;
  const Tensor& copy = guarded.copy;
  for (int64_t item = 0; item < copy.batch; ++item) {
    const Region region = ItemRegion(copy, item);
    if (copy.row_stride > copy.width && copy.rows > 1) {
      Region gap = region;
      gap.data = static_cast<uint8_t*>(region.data) + copy.width * region.element_bytes;
      gap.rows = copy.rows - 1;
      gap.width = copy.row_stride - copy.width;
      add(not_byte(gap, kPoison), Finding::kGap, item);
    }
    Search search;
    search.region = region;
    if (guarded.use == Use::kRead) {
      search.kind = Search::Kind::kDifferent;
      search.other = ItemRegion(guarded.original, item);
      add(search, Finding::kChanged, item);
    } else if (copy.dtype != DType::kU8) {  // Saved state need not be written.
      search.kind = Search::Kind::kAllOnes;
      add(search, Finding::kUnwritten, item);
    }
  }
}

absl::StatusOr<std::vector<int64_t>> Guards::Find(absl::Span<const Search> searches) const {
  std::vector<int64_t> all;
  for (size_t first = 0; first < searches.size(); first += kMaxSearches) {
    const absl::StatusOr<std::vector<int64_t>> found =
        memory_.Find(context_, searches.subspan(first, kMaxSearches), scratch_);
    // The memory operations are right: it is what was enqueued before them that failed.
    if (!found.ok()) {
      return Fault(library_.implementation(), found.status().message(), kDeviceFaultReason);
    }
    all.insert(all.end(), found->begin(), found->end());
  }
  return all;
}

absl::Status Guards::Violation(const Finding& finding, int64_t found) const {
  const Guarded& guarded = guarded_[finding.guarded];
  const int64_t width = finding.search.region.width;
  const auto at = [&](int64_t first_column) {
    return absl::StrCat("(", finding.item, ", ", found / width, ", ", first_column + found % width,
                        ")");
  };
  std::string what;
  switch (finding.what) {
    case Finding::kBefore:
      what = absl::StrCat("wrote outside ", guarded.name, ", ", guarded.canary_bytes - found,
                          " bytes before its beginning");
      break;
    case Finding::kAfter: {
      const int64_t row_elements = std::max<int64_t>(guarded.copy.width, 1);
      const int64_t beyond = found / ElementBytes(guarded.copy);
      what = absl::StrCat("wrote outside ", guarded.name, ", ", found, " bytes behind its end");
      if (guarded.copy.dtype != DType::kU8) {
        absl::StrAppend(&what, ", at (", guarded.copy.batch - 1, ", ",
                        guarded.copy.rows + beyond / row_elements, ", ", beyond % row_elements,
                        ")");
      }
      break;
    }
    case Finding::kGap:
      what = absl::StrCat("wrote between the rows of ", guarded.name, ", at ",
                          at(guarded.copy.width), ": its rows are ", guarded.copy.width,
                          " wide and ", guarded.copy.row_stride, " apart");
      break;
    case Finding::kChanged:
      what = absl::StrCat("changed its input ", guarded.name, " at ", at(0));
      break;
    case Finding::kUnwritten:
      what = absl::StrCat("did not write ", guarded.name, " at ", at(0));
      break;
  }
  return Fault(library_.implementation(), what, kViolationReason);
}

absl::Status Guards::Check() {
  std::vector<Finding> findings;
  for (size_t i = 0; i < guarded_.size(); ++i) AddSearches(i, &findings);
  // Writing outside first: it may be why something else is wrong.
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.what < b.what; });
  std::vector<Search> searches;
  for (const Finding& finding : findings) searches.push_back(finding.search);
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<int64_t> found, Find(searches));
  for (size_t i = 0; i < findings.size(); ++i) {
    if (found[i] >= 0) return Violation(findings[i], found[i]);
  }
  return absl::OkStatus();
}

absl::Status Guards::CopyOut() {
  for (const Guarded& guarded : guarded_) {
    if (guarded.use != Use::kWritten) continue;
    for (int64_t item = 0; item < guarded.copy.batch; ++item) {
      PLUMBLINE_RETURN_IF_ERROR(memory_.Copy(context_, ItemRegion(guarded.copy, item),
                                             ItemRegion(guarded.original, item)));
    }
  }
  return absl::OkStatus();
}

absl::Status Guards::EnterAgain(NodeView* node) {
  return Guard(absl::StrCat("the output of ", node->node->name), Use::kWritten, &node->output);
}

absl::Status Guards::CheckAgain(absl::string_view when) {
  const Guarded again = std::move(guarded_.back());
  guarded_.pop_back();
  std::vector<Search> searches;
  for (int64_t item = 0; item < again.copy.batch; ++item) {
    Search search;
    search.kind = Search::Kind::kDifferent;
    search.region = ItemRegion(again.copy, item);
    search.other = ItemRegion(again.original, item);
    searches.push_back(search);
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<int64_t> found, Find(searches));
  for (size_t item = 0; item < found.size(); ++item) {
    if (found[item] < 0) continue;
    const int64_t width = again.copy.width;
    return Fault(library_.implementation(),
                 absl::StrCat("gives other bytes for ", again.name, " ", when, ", at (", item, ", ",
                              found[item] / width, ", ", found[item] % width, ")"),
                 kViolationReason);
  }
  return absl::OkStatus();
}

}  // namespace plumbline::plugin
