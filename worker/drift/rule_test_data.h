// Rules for tests, made of what PyTorch was measured at.
#ifndef PLUMBLINE_WORKER_DRIFT_RULE_TEST_DATA_H_
#define PLUMBLINE_WORKER_DRIFT_RULE_TEST_DATA_H_

#include <string>
#include <vector>

#include "proto/plumbline/v1/full_model.pb.h"
#include "worker/drift/rule_freeze.h"

namespace plumbline::drift {

// The five bfloat16 columns of full_model_h200.json as providers: "provider/default",
// "provider/sdpa-flash", "provider/sdpa-efficient", "provider/sdpa-math", "provider/blas-cublaslt".
// Each has an identity of its own.
std::vector<ProviderErrors> PyTorchProviders();

// Of the run they came from, as far as a test needs it.
v1::Rule::Binds TestBinds();

// What those runs would be reported as, in execution order, with a candidate that errs as
// "provider/default" does and ran as requested. Not judged. `providers` are those of the rule.
v1::FullModelReport PyTorchReport(const v1::Rule& rule);

// The names of the tensors of `rule`.
std::vector<std::string> NamesOf(const v1::Rule& rule);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_RULE_TEST_DATA_H_
