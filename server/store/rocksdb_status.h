#ifndef PLUMBLINE_SERVER_STORE_ROCKSDB_STATUS_H_
#define PLUMBLINE_SERVER_STORE_ROCKSDB_STATUS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace rocksdb {
class Status;
}  // namespace rocksdb

namespace plumbline::server {

// `status` as ours: NOT_FOUND, RESOURCE_EXHAUSTED (reason DISK_FULL), DATA_LOSS or UNAVAILABLE.
absl::Status FromRocksdb(const rocksdb::Status& status, absl::string_view doing);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_ROCKSDB_STATUS_H_
