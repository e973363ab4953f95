#ifndef PLUMBLINE_CLIENT_STYLE_H_
#define PLUMBLINE_CLIENT_STYLE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace plumbline::client {

enum class Ink { kPlain, kGood, kBad, kNotice, kFaint, kStrong };

// How text may look where it goes. The default is what a pipe gets: plain ASCII, the same on every
// machine.
struct Style {
  bool color = false;    // ANSI colours.
  bool unicode = false;  // Lines and marks beyond ASCII.
  int columns = 100;     // Width to stay within.

  // `text` in that ink, or as it is without colours.
  std::string Paint(Ink ink, absl::string_view text) const;
  // A horizontal line.
  std::string Rule(int width) const;

  absl::string_view Dot() const { return unicode ? "\u00b7" : "|"; }      // between facts of a line
  absl::string_view Pass() const { return unicode ? "\u2713" : "ok"; }    // a check mark
  absl::string_view Fail() const { return unicode ? "\u2717" : "FAIL"; }  // a cross
  absl::string_view Arrow() const {
    return unicode ? "\u2514\u2500" : "->";
  }  // belongs to the line above
};

// `text` with newlines for spaces so that no line is longer than `columns`, but for single words;
// every line after the first begins with `indent` spaces. `first_column`: where the text begins.
std::string Wrap(absl::string_view text, int first_column, int indent, int columns);

// `text` with its control characters written out, "\\x1b" for an escape: names come from files that
// anybody may have written, and a terminal would obey them.
std::string Printable(absl::string_view text);

// Characters that a terminal shows of UTF-8 text without colours.
int DisplayWidth(absl::string_view text);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_STYLE_H_
