#include "server/store/rocksdb_status.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "rocksdb/status.h"

namespace plumbline::server {

absl::Status FromRocksdb(const rocksdb::Status& status, absl::string_view doing) {
  if (status.ok()) return absl::OkStatus();
  const std::string message = absl::StrCat(doing, ": ", status.ToString());
  if (status.IsNotFound()) return absl::NotFoundError(message);
  if (status.IsNoSpace()) return WithReason(absl::ResourceExhaustedError(message), "DISK_FULL");
  if (status.IsCorruption()) return absl::DataLossError(message);
  return absl::UnavailableError(message);
}

}  // namespace plumbline::server
