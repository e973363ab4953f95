#include "worker/drift/row_names.h"

namespace plumbline::drift {
namespace {

v1::RowKind KindOf(h3::RowKind kind) {
  switch (kind) {
    case h3::RowKind::kText:
      return v1::ROW_KIND_TEXT;
    case h3::RowKind::kKeyframe:
      return v1::ROW_KIND_KEYFRAME;
    case h3::RowKind::kAudio:
      return v1::ROW_KIND_AUDIO;
    case h3::RowKind::kVideo:
      return v1::ROW_KIND_VIDEO;
  }
  return v1::ROW_KIND_UNSPECIFIED;
}

}  // namespace

RowNamer PackedRowNamer(const h3::PackedLayout& layout) {
  return [&layout](int64_t batch, int64_t row) {
    v1::RowLocation location = NameOtherRow(batch, row);
    const h3::RowPlace place = layout.PlaceOfRow(row);
    location.set_kind(KindOf(place.kind));
    for (int64_t coordinate : place.coordinate) {
      location.add_coordinate(static_cast<int32_t>(coordinate));
    }
    return location;
  };
}

}  // namespace plumbline::drift
