#include "client/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace plumbline::client {
namespace {

constexpr absl::string_view kGap = "  ";
constexpr int kNoteIndent = 4;
constexpr int kNoteHang = 7;  // Past the arrow.

std::string Spaces(int count) { return std::string(static_cast<size_t>(std::max(0, count)), ' '); }

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (const Column& column : columns_) {
    widths_.push_back(std::max(DisplayWidth(column.title), column.least_width));
  }
}

void Table::AddRow(std::vector<Cell> cells) {
  for (Cell& cell : cells) cell.text = Printable(cell.text);
  for (size_t i = 0; i < cells.size() && i < widths_.size(); ++i) {
    widths_[i] = std::max(widths_[i], DisplayWidth(cells[i].text));
  }
  rows_.push_back({std::move(cells), false});
}

void Table::AddNote(std::string text, Ink ink) {
  rows_.push_back({{Cell(Printable(text), ink)}, true});
}

std::string Table::Render(const Style& style) const {
  std::string out;
  const auto add_line = [&](const std::vector<Cell>& cells) {
    std::string line;
    int pending = 0;  // Spaces that are written only before something.
    for (size_t i = 0; i < cells.size() && i < columns_.size(); ++i) {
      pending += static_cast<int>(kGap.size());
      const int padding = widths_[i] - DisplayWidth(cells[i].text);
      if (columns_[i].align == Align::kRight) pending += padding;
      if (!cells[i].text.empty()) {
        absl::StrAppend(&line, Spaces(pending), style.Paint(cells[i].ink, cells[i].text));
        pending = 0;
      }
      if (columns_[i].align == Align::kLeft) pending += padding;
    }
    absl::StrAppend(&out, line, "\n");
  };

  std::vector<Cell> titles;
  int width = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    titles.emplace_back(columns_[i].title, Ink::kFaint);
    width += widths_[i] + (i == 0 ? 0 : static_cast<int>(kGap.size()));
  }
  add_line(titles);
  absl::StrAppend(&out, kGap, style.Paint(Ink::kFaint, style.Rule(width)), "\n");
  for (const Row& row : rows_) {
    if (row.is_note) {
      const std::string note = Wrap(row.cells[0].text, kNoteIndent, kNoteHang, style.columns);
      absl::StrAppend(&out, Spaces(kNoteIndent), style.Paint(row.cells[0].ink, note), "\n");
    } else {
      add_line(row.cells);
    }
  }
  return out;
}

}  // namespace plumbline::client
