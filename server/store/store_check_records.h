// Inside of StoreCheck: its one template, for its two files.
#ifndef PLUMBLINE_SERVER_STORE_STORE_CHECK_RECORDS_H_
#define PLUMBLINE_SERVER_STORE_STORE_CHECK_RECORDS_H_

#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/store/store_check.h"
#include "server/store/store_impl.h"

namespace plumbline::server {

template <typename Record, typename Take>
void StoreCheck::Records(Family family, const std::string& prefix, const Take& take) {
  Note(absl::StrCat("read ", FamilyName(family)),
       store_->impl_->Visit(
           family, prefix, keys::PrefixEnd(prefix), false,
           [&](absl::string_view key, absl::string_view value) {
             Record record;
             if (record.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
               take(key, record);
             } else {
               Problem(absl::StrCat("the record under ", FamilyName(family), " key ",
                                    absl::CHexEscape(key), " is unreadable"));
             }
             return true;
           }));
}

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_STORE_CHECK_RECORDS_H_
