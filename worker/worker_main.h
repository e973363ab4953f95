// plumbline-worker: does the tasks of a coordinator on this machine's device.
#ifndef PLUMBLINE_WORKER_WORKER_MAIN_H_
#define PLUMBLINE_WORKER_WORKER_MAIN_H_

namespace plumbline::worker {

// The program; its exit status.
int WorkerMain(int argc, char** argv);

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_WORKER_MAIN_H_
