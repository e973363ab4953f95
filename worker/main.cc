#include "worker/worker_main.h"

int main(int argc, char** argv) { return plumbline::worker::WorkerMain(argc, argv); }
