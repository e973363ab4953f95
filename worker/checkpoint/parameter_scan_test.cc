#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/sha256.h"
#include "worker/checkpoint/scan.h"

namespace plumbline::checkpoint {
namespace {

// A row's figures do not depend on how the bytes come.
TEST(ParameterScanTest, PiecesInAnyOrderGiveTheSameFigures) {
  const int64_t rows = 24, row_bytes = 36;
  std::string bytes(rows * row_bytes, 0);
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (char& byte : bytes) byte = static_cast<char>(random() % 0x7f);  // Finite.
  const auto span = [&](int64_t from, int64_t count) {
    return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()) + from, count);
  };
  ParameterScan whole(DType::kF32, rows, row_bytes, 3);
  whole.Add(0, span(0, bytes.size()));
  const Figures expected = whole.Finish();
  EXPECT_EQ(expected.sha256, Sha256Hex(bytes));
  EXPECT_EQ(expected.part_norms.size(), 3u);
  for (int round = 0; round < 20; ++round) {
    std::vector<int64_t> cuts = {0, static_cast<int64_t>(bytes.size())};
    for (int i = 0; i < 9; ++i) cuts.push_back(random() % (bytes.size() / 4) * 4);
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    std::vector<size_t> order;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), random);
    ParameterScan scan(DType::kF32, rows, row_bytes, 3);
    for (size_t i : order) scan.Add(cuts[i], span(cuts[i], cuts[i + 1] - cuts[i]));
    const Figures figures = scan.Finish();
    EXPECT_EQ(figures.sha256, expected.sha256);
    EXPECT_EQ(figures.part_norms, expected.part_norms);
    EXPECT_EQ(figures.row_sum, expected.row_sum);
  }
}

// Rows in another order have the same sum. A bit that changed is no other order: not a sign's, and
// not one so low that the row's norm is the same.
TEST(ParameterScanTest, RowSumIsOfTheRowsBits) {
  constexpr int64_t kRows = 3;
  std::vector<float> values = {1e10f, 1e-10f, -0.0f, 3, 1, 2, -4, 0.5f, 7, 0, 0, -1};
  const int64_t row_bytes = static_cast<int64_t>(values.size() / kRows * sizeof(float));
  const auto row_sum = [&](const std::vector<float>& of) {
    ParameterScan scan(DType::kF32, kRows, row_bytes, 1);
    scan.Add(0, absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(of.data()),
                                    of.size() * sizeof(float)));
    return scan.Finish().row_sum;
  };
  const uint64_t expected = row_sum(values);
  std::vector<float> rotated = values;
  std::rotate(rotated.begin(), rotated.begin() + 4, rotated.end());
  EXPECT_EQ(row_sum(rotated), expected);
  for (size_t bit = 0; bit < values.size() * 32; ++bit) {
    std::vector<float> flipped = values;
    uint32_t bits;
    std::memcpy(&bits, &flipped[bit / 32], sizeof(bits));
    bits ^= 1u << bit % 32;
    std::memcpy(&flipped[bit / 32], &bits, sizeof(bits));
    EXPECT_NE(row_sum(flipped), expected) << "bit " << bit;
  }
}

}  // namespace
}  // namespace plumbline::checkpoint
