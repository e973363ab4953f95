#include <algorithm>
#include <cstring>

#include "kernels/plugin/guard_memory.h"

namespace plumbline::plugin {
namespace {

uint8_t* RowOf(const Region& region, int64_t row) {
  return static_cast<uint8_t*>(region.data) + row * region.stride * region.element_bytes;
}

// The first byte of [data, data + bytes) that is not `byte`, or -1.
int64_t FirstOther(const uint8_t* data, int64_t bytes, uint8_t byte) {
  const uint8_t* const end = data + bytes;
  const uint8_t* const found =
      std::find_if(data, end, [byte](uint8_t value) { return value != byte; });
  return found == end ? -1 : found - data;
}

// The first element all of whose bits are set, or -1.
template <typename T>
int64_t FirstAllOnes(const uint8_t* data, int64_t width) {
  constexpr T kAllOnes = static_cast<T>(~T{0});
  for (int64_t i = 0; i < width; ++i) {
    T value;
    std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    if (value == kAllOnes) return i;
  }
  return -1;
}

int64_t FirstAllOnes(const uint8_t* data, int64_t width, int64_t element_bytes) {
  switch (element_bytes) {
    case 2:
      return FirstAllOnes<uint16_t>(data, width);
    case 4:
      return FirstAllOnes<uint32_t>(data, width);
    case 8:
      return FirstAllOnes<uint64_t>(data, width);
    default:
      return FirstAllOnes<uint8_t>(data, width);
  }
}

int64_t FirstInRow(const Search& search, int64_t row) {
  const Region& region = search.region;
  const uint8_t* const data = RowOf(region, row);
  const int64_t bytes = region.width * region.element_bytes;
  switch (search.kind) {
    case Search::Kind::kNotByte: {
      const int64_t found = FirstOther(data, bytes, search.byte);
      return found < 0 ? -1 : found / region.element_bytes;
    }
    case Search::Kind::kAllOnes:
      return FirstAllOnes(data, region.width, region.element_bytes);
    case Search::Kind::kDifferent: {
      const uint8_t* const other = RowOf(search.other, row);
      if (std::memcmp(data, other, bytes) == 0) return -1;
      return (std::mismatch(data, data + bytes, other).first - data) / region.element_bytes;
    }
  }
  return -1;
}

int64_t First(const Search& search) {
  for (int64_t row = 0; row < search.region.rows; ++row) {
    const int64_t column = FirstInRow(search, row);
    if (column >= 0) return row * search.region.width + column;
  }
  return -1;
}

class OnCpu final : public GuardMemory {
 public:
  absl::Status Fill(const ExecutionContext& context, void* data, uint8_t byte,
                    size_t bytes) const override {
    std::memset(data, byte, bytes);
    return absl::OkStatus();
  }

  absl::Status Copy(const ExecutionContext& context, const Region& from,
                    const Region& to) const override {
    for (int64_t row = 0; row < from.rows; ++row) {
      std::memcpy(RowOf(to, row), RowOf(from, row), from.width * from.element_bytes);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<int64_t>> Find(const ExecutionContext& context,
                                            absl::Span<const Search> searches,
                                            void* scratch) const override {
    std::vector<int64_t> found;
    for (const Search& search : searches) found.push_back(First(search));
    return found;
  }
};

}  // namespace

const GuardMemory& CpuGuardMemory() {
  static const OnCpu* const memory = new OnCpu;
  return *memory;
}

}  // namespace plumbline::plugin
