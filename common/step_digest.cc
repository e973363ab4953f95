#include "common/step_digest.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/sha256.h"
#include "proto/plumbline/v1/generation.pb.h"

namespace plumbline {

std::string StepInputDigest(absl::string_view run_sha256, int32_t index,
                            const google::protobuf::RepeatedPtrField<v1::TensorDigest>& inputs) {
  std::vector<const v1::TensorDigest*> sorted;
  for (const v1::TensorDigest& input : inputs) sorted.push_back(&input);
  std::sort(sorted.begin(), sorted.end(), [](const v1::TensorDigest* a, const v1::TensorDigest* b) {
    return a->name() < b->name();
  });
  std::string text = absl::StrCat("plumbline-step-1\nrun ", run_sha256, "\nstep ", index, "\n");
  for (const v1::TensorDigest* input : sorted) {
    absl::StrAppend(&text, "tensor ", input->name(), " ", input->dtype(), " ",
                    absl::StrJoin(input->shape(), ","), " ", input->sha256(), "\n");
  }
  return Sha256Hex(text);
}

}  // namespace plumbline
