// A folder of a fuzzer's own, gone when the process ends.
#ifndef PLUMBLINE_TESTS_FUZZ_TEMPORARY_FOLDER_H_
#define PLUMBLINE_TESTS_FUZZ_TEMPORARY_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace plumbline::fuzz {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "plumbline-fuzz-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = std::filesystem::canonical(name).string();
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace plumbline::fuzz

#endif  // PLUMBLINE_TESTS_FUZZ_TEMPORARY_FOLDER_H_
