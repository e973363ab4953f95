// A program that probes a plug-in and does nothing else, for tests whose own main() is
// GoogleTest's.
#include "worker/plugin/probe.h"

int main(int argc, char** argv) { return plumbline::worker::RunProbe(argc, argv).value_or(2); }
