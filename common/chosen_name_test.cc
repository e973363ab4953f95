#include "common/chosen_name.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"

namespace plumbline {
namespace {

TEST(ChosenNameTest, WhatIsSeenIsAccepted) {
  for (const char* const name :
       {"a", "My kernel, 2nd try (fast)", "M\xc3\xbcller", "\xe6\xa0\xb8", "\xd7\xa9\xd7\x9c",
        "\xd8\xb9\xd8\xb1", "caf\x65\xcc\x81", "\xf0\x9f\x9a\x80", "a/b\\c:d*?\"<>|", "~"}) {
    EXPECT_TRUE(CheckChosenName(name, "label", 63).ok()) << name;
  }
  EXPECT_TRUE(CheckRemark("", "reason", 10).ok());
  EXPECT_TRUE(CheckRemark(" for maintenance ", "reason", 100).ok());
}

TEST(ChosenNameTest, WhatIsNotSeenOrSeenElsewhereIsRefused) {
  const std::string bad[] = {
      std::string("\0", 1),
      "\x1b[31m",
      "\n",
      "\x7f",
      "\xc2\x85",      // U+0085, next line.
      "\xc2\xa0",      // U+00A0, no-break space.
      "\xc2\xad",      // U+00AD, soft hyphen.
      "\xd8\x9c",      // U+061C, Arabic letter mark.
      "\xe1\x9a\x80",  // U+1680, Ogham space.
      "\xe2\x80\x8b",  // U+200B, zero width space.
      "\xe2\x80\x8d",  // U+200D, zero width joiner.
      "\xe2\x80\x8e",  // U+200E, left-to-right mark.
      "\xe2\x80\xa8",  // U+2028, line separator.
      "\xe2\x80\xa9",  // U+2029, paragraph separator.
      "\xe2\x80\xaa",
      "\xe2\x80\xab",
      "\xe2\x80\xac",
      "\xe2\x80\xad",
      "\xe2\x80\xae",  // U+202A to U+202E, embeddings and overrides.
      "\xe2\x81\xa0",  // U+2060, word joiner.
      "\xe2\x81\xa6",
      "\xe2\x81\xa7",
      "\xe2\x81\xa8",
      "\xe2\x81\xa9",      // U+2066 to U+2069, isolates.
      "\xe2\xa0\x80",      // U+2800, blank Braille pattern.
      "\xe3\x80\x80",      // U+3000, ideographic space.
      "\xe3\x85\xa4",      // U+3164, Hangul filler.
      "\xee\x80\x80",      // U+E000, private use.
      "\xef\xb8\x8f",      // U+FE0F, variation selector.
      "\xef\xbb\xbf",      // U+FEFF, byte order mark.
      "\xef\xbf\xbf",      // U+FFFF, noncharacter.
      "\xf3\xa0\x81\x81",  // U+E0041, tag.
      "\xf4\x8f\xbf\xbf",  // U+10FFFF, noncharacter.
      // No UTF-8.
      "\x80",
      "\xc0\x80",
      "\xc3",
      "\xe0\x80\x80",
      "\xed\xa0\x80",
      "\xf0\x80\x80\x80",
      "\xf4\x90\x80\x80",
      "\xf5\x80\x80\x80",
      "\xff",
  };
  for (const std::string& text : bad) {
    EXPECT_FALSE(IsPlainText("a" + text + "b")) << text.size() << ": " << text;
    EXPECT_FALSE(CheckChosenName("a" + text + "b", "label", 63).ok()) << text;
    EXPECT_FALSE(CheckRemark(text, "reason", 63).ok()) << text;
  }
}

TEST(ChosenNameTest, SaysWhichFieldAndWhatIsAccepted) {
  EXPECT_EQ(CheckChosenName("ab\xe2\x80\xaez", "spec.label", 63).message(),
            "spec.label: \"ab\\xe2\\x80\\xaez\" is no name; accepted: 1 to 63 bytes of UTF-8 "
            "on one line: letters, digits, punctuation, symbols and spaces; no control, format or "
            "invisible characters, nor spaces at its ends");
  for (const char* const name : {"", " a", "a "}) {
    EXPECT_FALSE(CheckChosenName(name, "label", 63).ok()) << name;
  }
  EXPECT_FALSE(CheckChosenName(std::string(64, 'a'), "label", 63).ok());
  EXPECT_TRUE(absl::StrContains(CheckRemark("a\n", "reason", 9).message(), "0 to 9 bytes"));
}

}  // namespace
}  // namespace plumbline
