#ifndef PLUMBLINE_CLIENT_TABLE_H_
#define PLUMBLINE_CLIENT_TABLE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/style.h"

namespace plumbline::client {

struct Cell {
  Cell(std::string text, Ink ink = Ink::kPlain) : text(std::move(text)), ink(ink) {}
  Cell(const char* text, Ink ink = Ink::kPlain) : text(text), ink(ink) {}
  Cell(absl::string_view text, Ink ink = Ink::kPlain) : text(text), ink(ink) {}

  std::string text;
  Ink ink;
};

// Rows under a header, every column as wide as its widest cell, two spaces between columns and
// before the first, none at the end of a line.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    int least_width = 0;  // So that tables under each other have one shape.
  };

  explicit Table(std::vector<Column> columns);

  // As many cells as there are columns, or fewer: the rest are empty.
  void AddRow(std::vector<Cell> cells);
  // Text under the row before, indented by four and wrapped to style.columns, which takes no part
  // in the columns' widths.
  void AddNote(std::string text, Ink ink);

  bool empty() const { return rows_.empty(); }
  // Header, line and rows, each ending in a newline.
  std::string Render(const Style& style) const;

 private:
  struct Row {
    std::vector<Cell> cells;
    bool is_note = false;
  };

  std::vector<Column> columns_;
  std::vector<int> widths_;
  std::vector<Row> rows_;
};

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_TABLE_H_
