#ifndef PLUMBLINE_SERVER_BENCH_TABLE_ROW_H_
#define PLUMBLINE_SERVER_BENCH_TABLE_ROW_H_

#include <cstdio>
#include <string>

#include "absl/strings/string_view.h"

namespace plumbline::server {

// Prints a row of the table of what the coordinator must be as fast as, which ./dev bench puts
// together from all benchmarks: in Markdown, under its number.
inline void PrintTableRow(int number, absl::string_view work, const std::string& must,
                          const std::string& measured, bool met) {
  std::printf("| %d | %s | %s | %s | %s |\n", number, std::string(work).c_str(), must.c_str(),
              measured.c_str(), met ? "met" : "NOT MET");
  std::fflush(stdout);
}

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_BENCH_TABLE_ROW_H_
