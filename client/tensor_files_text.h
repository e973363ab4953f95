#ifndef PLUMBLINE_CLIENT_TENSOR_FILES_TEXT_H_
#define PLUMBLINE_CLIENT_TENSOR_FILES_TEXT_H_

#include <string>

#include "client/style.h"
#include "proto/plumbline/v1/comparison.pb.h"

namespace plumbline::client {

// Every measure of every tensor of two files: four short lines a tensor, then what only one file
// has, then the sum.
std::string TensorFilesText(const v1::TensorFilesReport& report, const Style& style);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_TENSOR_FILES_TEXT_H_
