#include "server/scheduler/checkpoint_validation.h"

namespace plumbline::server {
namespace {

void RefuseTensors(const v1::JobSpec& spec, SpecChecker* checker) {
  if (spec.save_tensors()) checker->Add("spec.save_tensors", "no tensors are kept", "nothing");
}

}  // namespace

void CheckCheckpoint(const v1::JobSpec& spec, SpecChecker* checker) {
  checker->Checkpoint("spec.checkpoint", spec.checkpoint());
  // It runs no model, but it has a checkpoint.
  v1::JobSpec others;
  others.set_composition(spec.composition());
  others.set_inject(spec.inject());
  checker->RefuseModelFields(others);
  RefuseTensors(spec, checker);
  const v1::CheckpointSpec& check = spec.checkpoint_check();
  switch (check.operation_case()) {
    case v1::CheckpointSpec::kVerify:
      if (check.verify().has_manifest()) {
        checker->File("spec.checkpoint_check.verify.manifest", check.verify().manifest());
      }
      break;
    case v1::CheckpointSpec::kManifest:
      break;
    case v1::CheckpointSpec::OPERATION_NOT_SET:
      checker->Add("spec.checkpoint_check", "says nothing to do", "verify or manifest");
  }
}

void CheckSelftest(const v1::JobSpec& spec, SpecChecker* checker) {
  checker->RefuseModelFields(spec);
  RefuseTensors(spec, checker);
}

}  // namespace plumbline::server
