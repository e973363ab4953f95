#include "common/chosen_name.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

// In order. Categories Cc, Cf, Co, Cs, Zl, Zp, Zs but for U+0020; noncharacters; code points that
// are ignored by default; U+2800, a blank.
constexpr Range kNotSeen[] = {
    {0x0, 0x1f},        {0x7f, 0xa0},        {0xad, 0xad},       {0x34f, 0x34f},
    {0x600, 0x605},     {0x61c, 0x61c},      {0x6dd, 0x6dd},     {0x70f, 0x70f},
    {0x890, 0x891},     {0x8e2, 0x8e2},      {0x115f, 0x1160},   {0x1680, 0x1680},
    {0x17b4, 0x17b5},   {0x180b, 0x180f},    {0x2000, 0x200f},   {0x2028, 0x202f},
    {0x205f, 0x206f},   {0x2800, 0x2800},    {0x3000, 0x3000},   {0x3164, 0x3164},
    {0xd800, 0xf8ff},   {0xfdd0, 0xfdef},    {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
    {0xffa0, 0xffa0},   {0xfff0, 0xfffb},    {0xfffe, 0xffff},   {0x110bd, 0x110bd},
    {0x110cd, 0x110cd}, {0x13430, 0x1343f},  {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
    {0x1fffe, 0x1ffff}, {0x2fffe, 0x2ffff},  {0x3fffe, 0x3ffff}, {0x4fffe, 0x4ffff},
    {0x5fffe, 0x5ffff}, {0x6fffe, 0x6ffff},  {0x7fffe, 0x7ffff}, {0x8fffe, 0x8ffff},
    {0x9fffe, 0x9ffff}, {0xafffe, 0xaffff},  {0xbfffe, 0xbffff}, {0xcfffe, 0xcffff},
    {0xdfffe, 0xe0fff}, {0xefffe, 0x10ffff},
};

bool IsSeen(uint32_t code_point) {
  const Range* const range =
      std::lower_bound(std::begin(kNotSeen), std::end(kNotSeen), code_point,
                       [](const Range& each, uint32_t wanted) { return each.last < wanted; });
  return range == std::end(kNotSeen) || code_point < range->first;
}

// Takes a character from the front of `text`; false for what is no UTF-8: RFC 3629.
bool Consume(absl::string_view* text, uint32_t* code_point) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>((*text)[i]); };
  const unsigned char lead = byte(0);
  const size_t size = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (size == 0 || lead > 0xf4 || text->size() < size) return false;
  uint32_t value = size == 1 ? lead : lead & (0xff >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return false;
    value = (value << 6) | (byte(i) & 0x3f);
  }
  // Longer than it need be, or beyond the end. (Halves of pairs are not seen either.)
  if ((size == 3 && value < 0x800) || (size == 4 && (value < 0x10000 || value > 0x10ffff))) {
    return false;
  }
  text->remove_prefix(size);
  *code_point = value;
  return true;
}

constexpr char kCharacters[] =
    " bytes of UTF-8 on one line: letters, digits, punctuation, symbols and spaces; no control, "
    "format or invisible characters";

}  // namespace

bool IsPlainText(absl::string_view text) {
  while (!text.empty()) {
    uint32_t code_point = 0;
    if (!Consume(&text, &code_point) || !IsSeen(code_point)) return false;
  }
  return true;
}

absl::Status CheckChosenName(absl::string_view name, absl::string_view field, size_t max_bytes) {
  if (!name.empty() && name.size() <= max_bytes && name.front() != ' ' && name.back() != ' ' &&
      IsPlainText(name)) {
    return absl::OkStatus();
  }
  return FieldError(field, absl::StrCat(Quoted(name), " is no name"),
                    absl::StrCat("1 to ", max_bytes, kCharacters, ", nor spaces at its ends"));
}

absl::Status CheckRemark(absl::string_view remark, absl::string_view field, size_t max_bytes) {
  if (remark.size() <= max_bytes && IsPlainText(remark)) return absl::OkStatus();
  return FieldError(field, absl::StrCat(Quoted(remark), " cannot be shown as it is"),
                    absl::StrCat("0 to ", max_bytes, kCharacters));
}

}  // namespace plumbline
