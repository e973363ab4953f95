#include "worker/checkpoint/write_checkpoint_command.h"

int main(int argc, char** argv) { return plumbline::checkpoint::WriteCheckpointMain(argc, argv); }
