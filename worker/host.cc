#include "worker/host.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/status.h"
#include "common/version.h"
#include "kernels/provider/cpu/blas.h"
#ifdef PLUMBLINE_WITH_CUDA
#include "kernels/cuda/cuda_device.h"
#include "kernels/provider/cuda/cublas_version.h"
#endif

namespace plumbline::worker {
namespace {

constexpr size_t kMaxSystemFileBytes = 4 << 20;
constexpr int kMaxThreads = 1024;

// Memory that this process may use, bytes: the machine's, or its container's if that is less.
int64_t HostMemoryBytes() {
  const int64_t machine_bytes =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const absl::StatusOr<std::string> limit = ReadFile("/sys/fs/cgroup/memory.max", 64);
  int64_t container_bytes;
  // "max" where there is no limit.
  if (!limit.ok() || !absl::SimpleAtoi(*limit, &container_bytes)) return machine_bytes;
  return std::min(machine_bytes, container_bytes);
}

std::string ProcessorName() {
  const absl::StatusOr<std::string> text = ReadFile("/proc/cpuinfo", kMaxSystemFileBytes);
  if (text.ok()) {
    for (absl::string_view line : absl::StrSplit(*text, '\n')) {
      if (!absl::StartsWith(line, "model name")) continue;
      const std::pair<absl::string_view, absl::string_view> parts =
          absl::StrSplit(line, absl::MaxSplits(':', 1));
      return std::string(absl::StripAsciiWhitespace(parts.second));
    }
  }
  return "CPU";
}

constexpr char kCpu[] = "cpu";
constexpr char kAuto[] = "auto";
constexpr absl::string_view kCudaPrefix = "cuda:";

#ifdef PLUMBLINE_WITH_CUDA
constexpr bool kHasCuda = true;

std::string CublasText() {
  const absl::StatusOr<std::string> version = provider_cuda::CublasVersion();
  return version.ok() ? *version : "none";
}
#else
constexpr bool kHasCuda = false;

// What a build without CUDA never reaches.
absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(int) {
  return absl::NotFoundError("no CUDA device");
}
absl::StatusOr<std::string> CudaDeviceUuid(int) { return absl::NotFoundError("no CUDA device"); }
std::string CublasText() { return "none"; }
struct CudaDescription {
  int compute_capability = 0;
  std::string pci_bus_id;
};
absl::StatusOr<CudaDescription> DescribeCudaDevice(int) {
  return absl::NotFoundError("no CUDA device");
}
#endif

constexpr absl::string_view Accepted() { return kHasCuda ? "cpu, cuda:N, auto" : "cpu, auto"; }

// What `find` says of the GPU that `options` name; T() where it is the CPU that they name.
template <typename T>
absl::StatusOr<T> AskOfGpu(const DeviceOptions& options, absl::StatusOr<T> (*find)(int ordinal)) {
  if (options.device == kCpu) return T();
  if (options.device == kAuto) {
    absl::StatusOr<T> first = find(0);
    if (absl::IsNotFound(first.status())) return T();
    return first;
  }
  absl::string_view number = options.device;
  int ordinal;
  if (!kHasCuda || !absl::ConsumePrefix(&number, kCudaPrefix) ||
      !absl::SimpleAtoi(number, &ordinal)) {
    return FieldError("device", absl::StrCat(Quoted(options.device), " is not in this build"),
                      Accepted());
  }
  absl::StatusOr<T> found = find(ordinal);
  if (!found.ok()) return FieldError("device", found.status().message(), Accepted());
  return found;
}

}  // namespace

absl::StatusOr<std::string> FindGpuUuid(const DeviceOptions& options) {
  return AskOfGpu<std::string>(options, &CudaDeviceUuid);
}

absl::StatusOr<WorkerDevice> MakeWorkerDevice(const DeviceOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return FieldError("threads", absl::StrCat("is ", options.threads),
                      absl::StrCat("1 to ", kMaxThreads));
  }
  if (options.memory_bytes < 0) {
    return FieldError("memory", absl::StrCat("is ", options.memory_bytes), "1 or more bytes");
  }
  WorkerDevice result;
  result.threads =
      options.threads > 0
          ? options.threads
          : std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
  PLUMBLINE_ASSIGN_OR_RETURN(result.device,
                             AskOfGpu<std::unique_ptr<Device>>(options, &MakeCudaDevice));
  if (result.device != nullptr) {
    PLUMBLINE_ASSIGN_OR_RETURN(CudaDescription description,
                               AskOfGpu<CudaDescription>(options, &DescribeCudaDevice));
    result.compute_capability = description.compute_capability;
    result.pci_bus_id = std::move(description.pci_bus_id);
    return result;
  }
  const int64_t memory_bytes =
      options.memory_bytes > 0 ? options.memory_bytes : HostMemoryBytes() / 5 * 4;
  PLUMBLINE_ASSIGN_OR_RETURN(result.device, MakeCpuDevice(result.threads, memory_bytes));
  return result;
}

std::map<std::string, std::string> NumericalLibraries(DeviceKind device) {
  if (device == DeviceKind::kCuda) return {{"cublas", CublasText()}};
  const provider::BlasIdentity blas = provider::GetBlasIdentity();
  return {
      {"openblas", absl::StrCat(absl::StripPrefix(blas.version, "OpenBLAS "), " ", blas.core_type,
                                ", ", blas.threads, blas.threads == 1 ? " thread" : " threads")}};
}

v1::WorkerCapabilities DescribeWorker(const WorkerDevice& device, const Registry& registry,
                                      const KernelIdentity& kernel_identity) {
  v1::WorkerCapabilities capabilities;
  v1::Device& described = *capabilities.mutable_device();
  const DeviceKind kind = device.device->kind();
  const bool is_cpu = kind == DeviceKind::kCpu;
  described.set_kind(is_cpu ? v1::DEVICE_KIND_CPU : v1::DEVICE_KIND_CUDA);
  described.set_product(is_cpu ? ProcessorName() : device.device->DeviceClass());
  described.set_memory_bytes(device.device->MemoryBytes());
  described.set_threads(device.threads);
  described.set_compute_capability(device.compute_capability);
  described.set_device_class(device.device->DeviceClass());
  v1::KernelIdentity& identity = *capabilities.mutable_kernel_identity();
  identity.set_sha256(kernel_identity.sha256);
  identity.set_compiler(kernel_identity.compiler);
  identity.set_flags(kernel_identity.flags);
  identity.set_architecture(kernel_identity.architecture);
  for (auto& [name, version] : NumericalLibraries(kind)) {
    (*capabilities.mutable_libraries())[name] = version;
  }
  for (const std::string& implementation : registry.Implementations(kind)) {
    capabilities.add_implementations(implementation);
  }
  capabilities.set_version(kVersion);
  return capabilities;
}

int64_t ProcessMemoryBytes() {
  // Pages: total, then resident.
  const absl::StatusOr<std::string> text = ReadFile("/proc/self/statm", 256);
  if (!text.ok()) return 0;
  const std::vector<absl::string_view> fields = absl::StrSplit(*text, ' ');
  int64_t pages;
  if (fields.size() < 2 || !absl::SimpleAtoi(fields[1], &pages)) return 0;
  return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace plumbline::worker
