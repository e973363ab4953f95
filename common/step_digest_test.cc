#include "common/step_digest.h"

#include "gtest/gtest.h"
#include "proto/plumbline/v1/generation.pb.h"

namespace plumbline {
namespace {

google::protobuf::RepeatedPtrField<v1::TensorDigest> Inputs() {
  google::protobuf::RepeatedPtrField<v1::TensorDigest> inputs;
  v1::TensorDigest& rows = *inputs.Add();
  rows.set_name("rows");
  rows.set_dtype("F32");
  rows.add_shape(2);
  rows.add_shape(3);
  rows.set_sha256("bb");
  v1::TensorDigest& audio = *inputs.Add();
  audio.set_name("audio");
  audio.set_dtype("F32");
  audio.add_shape(4);
  audio.set_sha256("aa");
  return inputs;
}

TEST(StepDigestTest, IsTheSha256OfTheDocumentedLines) {
  // printf 'plumbline-step-1\nrun ff\nstep 7\ntensor audio F32 4 aa\ntensor rows F32 2,3 bb\n' |
  //   sha256sum
  EXPECT_EQ(StepInputDigest("ff", 7, Inputs()),
            "d745c8b37f0a73b59cf294fc89a5ea40001f3ea367ffc64a393dec55af0077f8");
}

TEST(StepDigestTest, DependsOnEverythingButTheOrderOfTheTensors) {
  const std::string digest = StepInputDigest("ff", 7, Inputs());
  auto inputs = Inputs();
  inputs.SwapElements(0, 1);
  EXPECT_EQ(StepInputDigest("ff", 7, inputs), digest);
  EXPECT_NE(StepInputDigest("fe", 7, inputs), digest);
  EXPECT_NE(StepInputDigest("ff", 8, inputs), digest);
  inputs.Mutable(0)->set_sha256("ab");
  EXPECT_NE(StepInputDigest("ff", 7, inputs), digest);
  inputs = Inputs();
  inputs.Mutable(1)->set_shape(0, 5);
  EXPECT_NE(StepInputDigest("ff", 7, inputs), digest);
}

}  // namespace
}  // namespace plumbline
