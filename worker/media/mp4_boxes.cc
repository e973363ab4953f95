#include "worker/media/mp4_boxes.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace plumbline::media {
namespace {

// Size and type; then, where the size says so, a larger size.
constexpr uint64_t kHeadBytes = 8;
constexpr uint64_t kLargeHeadBytes = 16;
constexpr uint64_t kSizeFollows = 1;
constexpr uint64_t kToTheEnd = 0;

uint64_t BigEndian(absl::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<uint8_t>(byte);
  return number;
}

}  // namespace

absl::Status CheckMp4IsWhole(const std::string& path) {
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) return absl::OkStatus();  // Whoever opens it next says why.
  for (uint64_t place = 0; bytes - place >= kHeadBytes;) {
    char head[kLargeHeadBytes] = {};
    file.seekg(static_cast<std::streamoff>(place));
    file.read(head, bytes - place < kLargeHeadBytes ? kHeadBytes : kLargeHeadBytes);
    if (!file) return absl::OkStatus();
    uint64_t size = BigEndian({head, 4});
    const absl::string_view type(head + 4, 4);
    if (size == kToTheEnd) return absl::OkStatus();
    if (size == kSizeFollows) size = BigEndian({head + kHeadBytes, kLargeHeadBytes - kHeadBytes});
    if (size < kHeadBytes) return absl::OkStatus();
    if (size > bytes - place) {
      // What others put behind the last box is no box.
      if (type != "mdat" && type != "moov") return absl::OkStatus();
      return absl::InvalidArgumentError(absl::StrCat(path, ": is cut short: its box ", type,
                                                     " has ", size, " bytes, of which ",
                                                     bytes - place, " are there"));
    }
    place += size;
  }
  return absl::OkStatus();
}

}  // namespace plumbline::media
