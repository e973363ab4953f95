#include "client/rule_text.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

namespace plumbline::client {
namespace {

v1::RuleReport Report() {
  v1::RuleReport report;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        rule {
          format: "plumbline-rule-1"
          origin: RULE_ORIGIN_FROZEN
          k: 1.2
          floors { forward: 0.001 gradient: 0.005 }
          binds {
            checkpoint_sha256: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
            inputs_sha256: "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
            device_class: "cpu-x86_64-avx2"
          }
          providers { name: "provider/default" kept: true }
          providers { name: "provider/sdpa-flash" kept: true }
          providers { name: "mine" dropped_because: "errors equal provider/default" }
          providers { name: "provider/sdpa-math" kept: true }
          tensors {
            name: "nodes.block.0"
            bound: 0.013
            relative_l2: [ 0.01, 0.008, 0.0075 ]
            max_abs: [ 1, 2, 3 ]
          }
          tensors {
            name: "nodes.block.0.grad"
            bound: 0.0302
            relative_l2: [ 0.02, 0.021, 1e-06 ]
            max_abs: [ 1, 2, 3 ]
          }
          leave_one_out {
            k: 1.1
            provider: "provider/default"
            failing: 1
            worst_ratio: 1.02
            worst_tensor: "nodes.block.0"
          }
          leave_one_out {
            k: 1.2
            provider: "provider/default"
            passed: true
            worst_ratio: 0.943
            worst_tensor: "nodes.block.0"
          }
          leave_one_out {
            k: 1.2
            provider: "provider/sdpa-flash"
            passed: true
            worst_ratio: 0.7
            worst_tensor: "nodes.block.0.grad"
          }
          leave_one_out {
            k: 1.2
            provider: "provider/sdpa-math"
            passed: true
            worst_ratio: 0.5
            worst_tensor: "nodes.block.0"
          }
          sha256: "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
        })pb",
      &report));
  return report;
}

TEST(RuleTextTest, ShowsWhatARuleIsAndWhereItComesFrom) {
  EXPECT_EQ(
      RuleReportText(Report(), Style()),
      R"(Ensemble rule  |  frozen  |  k 1.2  |  2 tensors  |  floors 1.00e-03 forward, 5.00e-03 gradients
  for cpu-x86_64-avx2, checkpoint aaaaaaaaaaaaaaaa, inputs bbbbbbbbbbbbbbbb
  sha256 cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc

  provider             held out, k 1.1     held out, k 1.2
  --------------------------------------------------------
  provider/default     FAIL 1.02 (1 over)  ok 0.94
    -> worst at nodes.block.0
  provider/sdpa-flash                      ok 0.70
    -> worst at nodes.block.0.grad
  mine
    -> dropped: errors equal provider/default
  provider/sdpa-math                       ok 0.50
    -> worst at nodes.block.0

  tensor                 bound   largest  of
  --------------------------------------------------
  nodes.block.0       1.30e-02  1.00e-02  default
  nodes.block.0.grad  3.02e-02  2.10e-02  sdpa-flash

)");
}

TEST(RuleTextTest, SetsTwoRulesSideBySide) {
  v1::RuleReport report = Report();
  *report.mutable_other() = report.rule();
  report.mutable_other()->set_origin(v1::RULE_ORIGIN_MANUAL);
  report.mutable_other()->set_k(1);
  report.mutable_other()->mutable_leave_one_out()->DeleteSubrange(0, 1);
  for (v1::Rule::HoldOut& held : *report.mutable_other()->mutable_leave_one_out()) held.set_k(1);
  report.mutable_other()->mutable_binds()->set_device_class("sm_90a");
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(
      R"pb(
        bounds { tensor: "nodes.block.1" other_bound: 0.5 }
        bounds { tensor: "nodes.block.0" bound: 0.013 other_bound: 0.026 }
        bounds { tensor: "nodes.block.0.grad" bound: 0.0302 other_bound: 0.0302 })pb",
      &report));
  EXPECT_EQ(
      RuleReportText(report, Style()),
      R"(Rule A  |  frozen  |  k 1.2  |  2 tensors  |  floors 1.00e-03 forward, 5.00e-03 gradients
  for cpu-x86_64-avx2, checkpoint aaaaaaaaaaaaaaaa, inputs bbbbbbbbbbbbbbbb
  sha256 cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc

  provider             held out, k 1.1     held out, k 1.2
  --------------------------------------------------------
  provider/default     FAIL 1.02 (1 over)  ok 0.94
    -> worst at nodes.block.0
  provider/sdpa-flash                      ok 0.70
    -> worst at nodes.block.0.grad
  mine
    -> dropped: errors equal provider/default
  provider/sdpa-math                       ok 0.50
    -> worst at nodes.block.0

Rule B  |  manual  |  k 1.0  |  2 tensors  |  floors 1.00e-03 forward, 5.00e-03 gradients
  for sm_90a, checkpoint aaaaaaaaaaaaaaaa, inputs bbbbbbbbbbbbbbbb
  sha256 cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc

  provider             held out, k 1.0
  ------------------------------------
  provider/default     ok 0.94
    -> worst at nodes.block.0
  provider/sdpa-flash  ok 0.70
    -> worst at nodes.block.0.grad
  mine
    -> dropped: errors equal provider/default
  provider/sdpa-math   ok 0.50
    -> worst at nodes.block.0

  tensor               bound A   bound B  B / A
  ---------------------------------------------
  nodes.block.1              -  5.00e-01      -
  nodes.block.0       1.30e-02  2.60e-02   2.00
  nodes.block.0.grad  3.02e-02  3.02e-02   1.00

)");
}

}  // namespace
}  // namespace plumbline::client
