#include "kernels/provider/cuda/tiled_attention.h"

#include "kernels/provider/cuda/operations.h"

namespace plumbline::provider_cuda {
namespace {

class TiledAttention final : public ProviderOperation {
 public:
  explicit TiledAttention(TiledKernel kernel)
      : ProviderOperation(OpKind::kAttention), kernel_(kernel) {}

  size_t SavedBytes(const ForwardCall& call) const override {
    return static_cast<size_t>(call.inputs[0].NumElements() / call.attributes.head_width) *
           sizeof(float);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call, const ExecutionContext&) const override {
    return TiledAttentionBackwardBytes(call);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return TiledAttentionForward(Stream(context), kernel_, call);
  }
  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    return TiledAttentionBackward(Stream(context), kernel_, call,
                                  reinterpret_cast<float*>(context.workspace.data()));
  }

 private:
  const TiledKernel kernel_;
};

}  // namespace

std::shared_ptr<const Operation> MakeTiledAttention(TiledKernel kernel) {
  return std::make_shared<TiledAttention>(kernel);
}

}  // namespace plumbline::provider_cuda
