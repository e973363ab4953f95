// Random calls of every operation, for the candidate's tests.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_RANDOM_CASE_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_RANDOM_CASE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/ops.h"
#include "kernels/testing/block_capture.h"

namespace plumbline {

// By default sizes that are multiples of nothing that a kernel might like.
struct CaseSizes {
  int64_t rows = 37;
  // One for each batch item. A value depends on its item's seed, its row and its column alone, so
  // that cases of other batches and row counts share rows.
  std::vector<uint64_t> item_seeds = {1};
  int64_t hidden = 40;
  int64_t heads = 3;
  int64_t head_width = 22;
  int64_t frequencies = 3;
};

// A node with random inputs, parameters and upstream gradient, and the memory of them.
struct RandomCase {
  CapturedNode node;
  // Inputs with a row for each row of the node and values of each batch item's own; their gradients
  // are so too.
  std::vector<bool> per_row;
  bool rows_independent = true;  // whether an output row depends on its own input rows alone
  bool batched = true;           // whether the node has a batch
  std::vector<std::unique_ptr<HostTensor>> memory;
};

// One case of every operation that has a backward; of some, one for each form that the model uses.
// Table inputs are strided views.
std::vector<RandomCase> MakeRandomCases(const CaseSizes& sizes);

// The operation of the implementation "candidate".
const Operation& CandidateOperation(OpKind op);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_RANDOM_CASE_H_
