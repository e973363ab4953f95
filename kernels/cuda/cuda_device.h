#ifndef PLUMBLINE_KERNELS_CUDA_CUDA_DEVICE_H_
#define PLUMBLINE_KERNELS_CUDA_CUDA_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/device.h"

namespace plumbline {

// GPU number `ordinal` of this machine. Its Context() has one stream, on which allocations, frees,
// copies and conversions are ordered too: memory that was freed while kernels of that stream may
// still use it is handed out again only behind them. Work on another stream must synchronise by
// itself before it frees.
//
// Allocations come from a pool that keeps what is freed, so that a plan's memory costs the driver's
// allocator once. Host memory is copied through two pinned buffers, so that packing one and moving
// the other overlap; a copy returns when the data has arrived, and copies wait for one another.
// Upload() has pinned buffers, streams and threads of its own, which wait for the other stream only
// where the memory that it is given was freed there.
//
// NOT_FOUND "no CUDA device" where there is no driver or no such GPU; FAILED_PRECONDITION where the
// GPU is older than compute capability 8.0, which the kernels are compiled for.
absl::StatusOr<std::unique_ptr<Device>> MakeCudaDevice(int ordinal);

// Which card GPU number `ordinal` of this process is, whatever CUDA_VISIBLE_DEVICES makes of the
// numbers: "GPU-" and its UUID, as `nvidia-smi -L` prints it. Takes nothing of the card. NOT_FOUND
// as MakeCudaDevice().
absl::StatusOr<std::string> CudaDeviceUuid(int ordinal);

// What others are told of that GPU.
struct CudaDescription {
  int compute_capability = 0;  // Times ten.
  std::string pci_bus_id;      // Where it is plugged in, e.g. "00000000:41:00.0".
};
absl::StatusOr<CudaDescription> DescribeCudaDevice(int ordinal);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CUDA_CUDA_DEVICE_H_
