#include "common/random_id.h"

#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace plumbline {
namespace {

constexpr char kBase32[] = "abcdefghijklmnopqrstuvwxyz234567";
constexpr size_t kIdCharacters = 16;

class KernelIds final : public IdSource {
 public:
  std::string NewId() override {
    uint8_t bytes[kIdCharacters];
    // Up to 256 bytes come at once or not at all (getrandom(2)).
    while (getrandom(bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) {
      if (errno == EINTR) continue;
      std::perror("getrandom");
      std::abort();
    }
    std::string id;
    for (uint8_t byte : bytes) {
      const uint8_t letters = id.empty() ? 16 : 32;  // An id begins with a letter.
      id.push_back(kBase32[byte % letters]);
    }
    return id;
  }
};

}  // namespace

IdSource* RandomIds() {
  static IdSource* const ids = new KernelIds;
  return ids;
}

}  // namespace plumbline
