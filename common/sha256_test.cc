#include "common/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plumbline {
namespace {

// Expected values: the examples of FIPS 180-4 (NIST, "SHA256.pdf") and RFC 6234.
TEST(Sha256Test, MatchesThePublishedExamples) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256Hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, PiecesGiveTheDigestOfTheWhole) {
  Sha256 sha256;
  for (int i = 0; i < 1000; ++i) sha256.Update(std::string(1000, 'a'));
  EXPECT_EQ(sha256.FinishHex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256Test, FinishStartsAnew) {
  Sha256 sha256;
  sha256.Update("something else");
  sha256.Finish();
  const std::vector<uint8_t> abc = {'a', 'b', 'c'};
  sha256.Update(absl::MakeConstSpan(abc));
  const Sha256Digest digest = sha256.Finish();
  EXPECT_EQ(digest[0], 0xba);
  EXPECT_EQ(HexDigest(digest), Sha256Hex(absl::MakeConstSpan(abc)));
}

}  // namespace
}  // namespace plumbline
