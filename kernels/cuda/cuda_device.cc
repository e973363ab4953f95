#include "kernels/cuda/cuda_device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/status.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/difference.h"
#include "kernels/cuda/pinned_copies.h"
#include "kernels/cuda/sm90.h"
#include "kernels/cuda/synthetic.h"
#include "kernels/cuda/torch_normal.h"

namespace plumbline {
namespace {

constexpr int kLeastComputeCapabilityMajor = 8;
constexpr size_t kStagingBytes = size_t{16} << 20;
// What a process holds of a device beside its pool: CUDA's context, kernels, cuBLAS.
constexpr int64_t kBesidePoolBytes = int64_t{2} << 30;

class CudaGraph final : public RecordedWork {
 public:
  explicit CudaGraph(cudaStream_t stream) : stream_(stream) {}
  ~CudaGraph() override {
    if (executable_ == nullptr) return;
    cudaStreamSynchronize(stream_);  // It may still run.
    cudaGraphExecDestroy(executable_);
  }

  absl::Status Instantiate(cudaGraph_t graph) {
    return CudaStatus(cudaGraphInstantiate(&executable_, graph, 0), "recording");
  }
  absl::Status Enqueue() override {
    return CudaStatus(cudaGraphLaunch(executable_, stream_), "recorded work");
  }

 private:
  const cudaStream_t stream_;
  cudaGraphExec_t executable_ = nullptr;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(int ordinal, const cudaDeviceProp& properties)
      : ordinal_(ordinal),
        device_class_(absl::StrCat(properties.name, ", ", properties.multiProcessorCount,
                                   " multiprocessors",
                                   cuda::RunsSm90Code() ? ", sm_90a kernels" : "")),
        memory_bytes_(static_cast<int64_t>(properties.totalGlobalMem)) {}

  ~CudaDevice() override {
    cudaSetDevice(ordinal_);
    if (stream_ == nullptr) return;
    cudaStreamSynchronize(stream_);
    if (loading_stream_ != nullptr) {
      cudaStreamSynchronize(loading_stream_);
      cudaStreamDestroy(loading_stream_);
    }
    if (pool_ != nullptr) cudaMemPoolDestroy(pool_);
    cudaStreamDestroy(stream_);
  }

  absl::Status Start() {
    PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(ordinal_), "device"));
    PLUMBLINE_RETURN_IF_ERROR(
        CudaStatus(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"));
    PLUMBLINE_RETURN_IF_ERROR(
        CudaStatus(cudaStreamCreateWithFlags(&loading_stream_, cudaStreamNonBlocking), "stream"));
    cudaMemPoolProps pool = {};
    pool.allocType = cudaMemAllocationTypePinned;
    pool.location.type = cudaMemLocationTypeDevice;
    pool.location.id = ordinal_;
    PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaMemPoolCreate(&pool_, &pool), "memory pool"));
    uint64_t keep_everything = std::numeric_limits<uint64_t>::max();
    PLUMBLINE_RETURN_IF_ERROR(CudaStatus(
        cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_everything),
        "memory pool"));
    {
      absl::MutexLock lock(&loading_mutex_);
      PLUMBLINE_RETURN_IF_ERROR(loading_.Start(ordinal_));
    }
    absl::MutexLock lock(&staging_mutex_);
    return staging_.Allocate(kStagingBytes);
  }

  DeviceKind kind() const override { return DeviceKind::kCuda; }
  std::string DeviceClass() const override { return device_class_; }
  int64_t MemoryBytes() const override { return memory_bytes_; }

  int64_t HighWaterBytes() const override {
    absl::MutexLock lock(&mutex_);
    return high_water_bytes_;
  }
  void ResetHighWater() override {
    absl::MutexLock lock(&mutex_);
    high_water_bytes_ = used_bytes_;
  }

  absl::Status CopyToDevice(const void* host, const Tensor& to) override {
    if (!to.IsDense()) return NotDense();
    PLUMBLINE_RETURN_IF_ERROR(Select());
    absl::MutexLock lock(&staging_mutex_);
    return staging_.ToDevice(host, to.data, to.NumBytes(), stream_);
  }
  absl::Status CopyToHost(const Tensor& from, void* host) override {
    if (!from.IsDense()) return NotDense();
    PLUMBLINE_RETURN_IF_ERROR(Select());
    absl::MutexLock lock(&staging_mutex_);
    return staging_.ToHost(from.data, host, from.NumBytes(), stream_);
  }

  absl::StatusOr<DeviceBuffer> Upload(const void* host, size_t bytes) override {
    PLUMBLINE_RETURN_IF_ERROR(Select());
    PLUMBLINE_ASSIGN_OR_RETURN(void* const data, AllocateOn(loading_stream_, bytes));
    DeviceBuffer buffer(this, data, bytes);
    // What had the memory before may still run.
    PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaStreamSynchronize(loading_stream_), "device memory"));
    absl::MutexLock lock(&loading_mutex_);
    PLUMBLINE_RETURN_IF_ERROR(loading_.Copy(host, data, bytes));
    return buffer;
  }

  absl::Status FillSynthetic(absl::string_view name, uint64_t seed, SyntheticRecipe recipe,
                             const Tensor& to) override {
    PLUMBLINE_RETURN_IF_ERROR(Select());
    return FillSyntheticOnCuda(stream_, name, seed, recipe, to);
  }

  absl::Status DrawTorchNormal(const TorchNormalDraw& draw, absl::Span<float> to) override {
    PLUMBLINE_RETURN_IF_ERROR(Select());
    const int64_t count = static_cast<int64_t>(to.size());
    PLUMBLINE_ASSIGN_OR_RETURN(const DeviceBuffer buffer, Allocate(to.size() * sizeof(float)));
    const Tensor tensor = Tensor::Dense(buffer.data(), DType::kF32, 1, 1, count);
    PLUMBLINE_RETURN_IF_ERROR(
        DrawTorchNormalOnCuda(stream_, draw, static_cast<float*>(buffer.data()), count));
    return CopyToHost(tensor, to.data());
  }

  absl::StatusOr<TensorDifference> Difference(const Tensor& reference, const Tensor& x,
                                              absl::Span<const int64_t> ranks) override {
    PLUMBLINE_RETURN_IF_ERROR(CheckDifference(reference, x, ranks));
    PLUMBLINE_RETURN_IF_ERROR(Select());
    PLUMBLINE_ASSIGN_OR_RETURN(const DeviceBuffer scratch, Allocate(DifferenceScratchBytes()));
    return MeasureDifference(stream_, reference, x, ranks, scratch.data());
  }

  absl::Status Convert(const ExecutionContext& context, const Tensor& from,
                       const Tensor& to) override {
    PLUMBLINE_RETURN_IF_ERROR(Select());
    return ConvertOnCuda(static_cast<cudaStream_t>(context.stream), from, to);
  }

  bool CanRecord() const override { return true; }

  absl::StatusOr<std::unique_ptr<RecordedWork>> Record(
      absl::FunctionRef<absl::Status()> enqueue) override {
    PLUMBLINE_RETURN_IF_ERROR(Select());
    PLUMBLINE_RETURN_IF_ERROR(
        CudaStatus(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "recording"));
    absl::Status done = enqueue();
    cudaGraph_t graph = nullptr;
    done.Update(CudaStatus(cudaStreamEndCapture(stream_, &graph), "recording"));
    auto recorded = std::make_unique<CudaGraph>(stream_);
    if (done.ok()) done = recorded->Instantiate(graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    if (!done.ok()) return done;
    return recorded;
  }

  absl::Status Synchronize() override {
    PLUMBLINE_RETURN_IF_ERROR(Select());
    return CudaStatus(cudaStreamSynchronize(stream_), "device");
  }

  ExecutionContext Context() override {
    // Operations launch on the thread's current device.
    Select().IgnoreError();
    ExecutionContext context;
    context.device = this;
    context.stream = stream_;
    return context;
  }

 protected:
  absl::StatusOr<void*> AllocateBytes(size_t bytes) override {
    PLUMBLINE_RETURN_IF_ERROR(Select());
    return AllocateOn(stream_, bytes);
  }

  void FreeBytes(void* data, size_t bytes) override {
    Select().IgnoreError();
    cudaFreeAsync(data, stream_);
    absl::MutexLock lock(&mutex_);
    used_bytes_ -= static_cast<int64_t>(bytes);
  }

 private:
  static absl::Status NotDense() {
    return absl::InvalidArgumentError("only dense tensors can be copied between host and device");
  }

  // Memory that is there when `stream` has come so far.
  absl::StatusOr<void*> AllocateOn(cudaStream_t stream, size_t bytes) {
    void* data = nullptr;
    cudaError_t error = AllocateFromPool(stream, bytes, &data);
    if (error == cudaErrorMemoryAllocation) {
      // What the pool keeps in pieces too small may do as a whole.
      cudaStreamSynchronize(stream_);
      cudaMemPoolTrimTo(pool_, 0);
      error = AllocateFromPool(stream, bytes, &data);
    }
    absl::MutexLock lock(&mutex_);
    if (error == cudaErrorMemoryAllocation) return OutOfMemory(static_cast<int64_t>(bytes));
    if (error != cudaSuccess) return CudaStatus(error, "device memory");
    used_bytes_ += static_cast<int64_t>(bytes);
    high_water_bytes_ = std::max(high_water_bytes_, used_bytes_);
    return data;
  }

  // Whether a device with more memory is needed, or this one without other processes.
  absl::Status OutOfMemory(int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const int64_t needed_bytes = used_bytes_ + bytes;
    const std::string asked = absl::StrCat("device memory: ", bytes, " bytes asked for, ",
                                           used_bytes_, " of ", memory_bytes_, " in use here");
    if (needed_bytes > memory_bytes_ - kBesidePoolBytes) {
      return WithNeededMemory(absl::ResourceExhaustedError(asked), needed_bytes);
    }
    size_t free_bytes = 0, total_bytes = 0;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    return absl::ResourceExhaustedError(
        absl::StrCat(asked, " and ", free_bytes, " free: other processes hold the rest"));
  }

  cudaError_t AllocateFromPool(cudaStream_t stream, size_t bytes, void** data) {
    const cudaError_t error =
        cudaMallocFromPoolAsync(data, std::max<size_t>(bytes, 1), pool_, stream);
    if (error != cudaSuccess) cudaGetLastError();  // It must not be found again by a launch.
    return error;
  }

  // CUDA's current device is the calling thread's.
  absl::Status Select() const { return CudaStatus(cudaSetDevice(ordinal_), "device"); }

  const int ordinal_;
  const std::string device_class_;
  const int64_t memory_bytes_;
  cudaStream_t stream_ = nullptr;          // set by Start()
  cudaStream_t loading_stream_ = nullptr;  // of Upload()'s memory; set by Start()
  cudaMemPool_t pool_ = nullptr;           // set by Start()
  absl::Mutex staging_mutex_;
  PinnedStaging staging_ ABSL_GUARDED_BY(staging_mutex_);
  absl::Mutex loading_mutex_;
  ParallelUpload loading_ ABSL_GUARDED_BY(loading_mutex_);
  mutable absl::Mutex mutex_;
  int64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t high_water_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

absl::StatusOr<cudaDeviceProp> PropertiesOf(int ordinal) {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess || count == 0) {
    cudaGetLastError();
    return absl::NotFoundError(absl::StrCat(
        "no CUDA device",
        counted == cudaSuccess ? std::string() : absl::StrCat(": ", cudaGetErrorString(counted))));
  }
  if (ordinal < 0 || ordinal >= count) {
    return absl::NotFoundError(
        absl::StrCat("no CUDA device ", ordinal, "; there are 0 to ", count - 1));
  }
  cudaDeviceProp properties;
  PLUMBLINE_RETURN_IF_ERROR(
      CudaStatus(cudaGetDeviceProperties(&properties, ordinal), "device properties"));
  return properties;
}

}  // namespace

absl::StatusOr<std::string> CudaDeviceUuid(int ordinal) {
  PLUMBLINE_ASSIGN_OR_RETURN(const cudaDeviceProp properties, PropertiesOf(ordinal));
  const std::string hex = absl::BytesToHexString(
      absl::string_view(properties.uuid.bytes, sizeof(properties.uuid.bytes)));
  const absl::string_view digits = hex;
  return absl::StrCat("GPU-", digits.substr(0, 8), "-", digits.substr(8, 4), "-",
                      digits.substr(12, 4), "-", digits.substr(16, 4), "-", digits.substr(20));
}

absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(int ordinal) {
  PLUMBLINE_ASSIGN_OR_RETURN(const cudaDeviceProp properties, PropertiesOf(ordinal));
  if (properties.major < kLeastComputeCapabilityMajor) {
    return absl::FailedPreconditionError(
        absl::StrCat(properties.name, " has compute capability ", properties.major, ".",
                     properties.minor, "; the kernels need ", kLeastComputeCapabilityMajor, ".0"));
  }
  PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(ordinal), "device"));
  auto device = std::make_unique<CudaDevice>(ordinal, properties);
  PLUMBLINE_RETURN_IF_ERROR(device->Start());
  return device;
}

absl::StatusOr<CudaDescription> DescribeCudaDevice(int ordinal) {
  cudaDeviceProp properties;
  PLUMBLINE_RETURN_IF_ERROR(
      CudaStatus(cudaGetDeviceProperties(&properties, ordinal), "device properties"));
  CudaDescription description;
  description.compute_capability = 10 * properties.major + properties.minor;
  description.pci_bus_id = absl::StrFormat("%08x:%02x:%02x.0", properties.pciDomainID,
                                           properties.pciBusID, properties.pciDeviceID);
  return description;
}

}  // namespace plumbline
