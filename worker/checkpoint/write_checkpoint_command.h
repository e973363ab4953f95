// Writes a checkpoint to disk, synthetic ones above all, so that what reads files can be tried at
// any size.
//   write_checkpoint CHECKPOINT SHARDS FOLDER [ROOT]
// CHECKPOINT is what --checkpoint takes: synthetic:NAME[:SEED], or a folder under ROOT. Prints the
// bytes of all tensors.
#ifndef PLUMBLINE_WORKER_CHECKPOINT_WRITE_CHECKPOINT_COMMAND_H_
#define PLUMBLINE_WORKER_CHECKPOINT_WRITE_CHECKPOINT_COMMAND_H_

namespace plumbline::checkpoint {

// The program; its exit status.
int WriteCheckpointMain(int argc, char** argv);

}  // namespace plumbline::checkpoint

#endif  // PLUMBLINE_WORKER_CHECKPOINT_WRITE_CHECKPOINT_COMMAND_H_
