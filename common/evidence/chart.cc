#include "common/evidence/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace plumbline {
namespace {

// Okabe and Ito's colours, the strongest contrasts first.
constexpr absl::string_view kColours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                          "#E69F00", "#56B4E9", "#000000"};
constexpr absl::string_view kText = "#1a1a1a";
constexpr absl::string_view kFaint = "#6b6b6b";
constexpr absl::string_view kGrid = "#e4e4e4";

constexpr double kMargin = 16;
constexpr double kTitleHeight = 44;
constexpr double kLegendHeight = 22;
constexpr double kRowHeight = 15;
constexpr double kAxisHeight = 44;
constexpr double kWidth = 720;
constexpr double kCharacterWidth = 6.2;  // Of the labels' size, a little more than it takes.
constexpr double kLinesHeight = 260;
constexpr double kMarkRadius = 3.4;
// Marks of several series in a row, so that equal values do not hide each other.
constexpr double kSeriesShift = 2.2;
// So few decades have marks within.
constexpr int kFewDecades = 3;

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(text,
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// Maps values to a coordinate, and knows which values to mark.
class Scale {
 public:
  Scale(bool logarithmic, double from, double to) : log_(logarithmic), from_(from), to_(to) {}

  void Include(double value) {
    if (!std::isfinite(value) || (log_ && value <= 0)) return;
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }

  // After everything was included.
  void Finish() {
    if (low_ > high_) low_ = high_ = 1;
    if (log_) {
      low_ = std::pow(10, std::floor(std::log10(low_) + 1e-9));
      high_ = std::pow(10, std::ceil(std::log10(high_) - 1e-9));
      if (low_ == high_) high_ *= 10;
      return;
    }
    low_ = std::min(low_, 0.0);
    const double step = Step();
    high_ = std::ceil(high_ / step - 1e-9) * step;
    if (high_ <= low_) high_ = low_ + 1;
  }

  bool CanShow(double value) const { return std::isfinite(value) && (!log_ || value > 0); }
  double At(double value) const {
    const double part =
        log_ ? std::log(value / low_) / std::log(high_ / low_) : (value - low_) / (high_ - low_);
    return from_ + part * (to_ - from_);
  }

  std::vector<double> Ticks() const {
    std::vector<double> ticks;
    if (log_) {
      const int decades = static_cast<int>(std::lround(std::log10(high_ / low_)));
      const int step = std::max(1, decades / 8);
      for (int i = 0; i <= decades; i += step) {
        const double decade = low_ * std::pow(10, i);
        ticks.push_back(decade);
        if (decades > kFewDecades || i == decades) continue;
        for (double factor : {2.0, 5.0}) ticks.push_back(decade * factor);
      }
      return ticks;
    }
    for (double tick = low_; tick <= high_ * (1 + 1e-9); tick += Step()) ticks.push_back(tick);
    return ticks;
  }

  std::string Label(double tick) const {
    if (!log_) return absl::StrFormat("%g", tick);
    const int exponent = static_cast<int>(std::floor(std::log10(tick) + 1e-9));
    const double digit = std::round(tick / std::pow(10, exponent));
    if (exponent >= -3 && exponent <= 3)
      return absl::StrFormat("%g", digit * std::pow(10, exponent));
    return absl::StrFormat("%ge%d", digit, exponent);
  }

 private:
  // 1, 2 or 5 times a power of ten, for five marks or so.
  double Step() const {
    const double rough = std::max((high_ - std::min(low_, 0.0)) / 5, 1e-12);
    const double power = std::pow(10, std::floor(std::log10(rough)));
    for (double factor : {1.0, 2.0, 5.0}) {
      if (power * factor >= rough) return power * factor;
    }
    return power * 10;
  }

  const bool log_;
  const double from_;
  const double to_;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

class Canvas {
 public:
  Canvas(double width, double height) {
    absl::StrAppendFormat(&text_,
                          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" "
                          "viewBox=\"0 0 %g %g\" font-family=\"Helvetica, Arial, sans-serif\" "
                          "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" "
                          "fill=\"#ffffff\"/>\n",
                          width, height, width, height);
  }

  void Text(double x, double y, absl::string_view anchor, absl::string_view colour, double size,
            absl::string_view text, bool strong = false) {
    absl::StrAppendFormat(
        &text_,
        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\" font-size=\"%g\"%s>%s"
        "</text>\n",
        x, y, anchor, colour, size, strong ? " font-weight=\"bold\"" : "", Escaped(text));
  }
  void Upright(double x, double y, absl::string_view text) {
    absl::StrAppendFormat(&text_,
                          "<text transform=\"translate(%.1f %.1f) rotate(-90)\" "
                          "text-anchor=\"middle\" fill=\"%s\">%s</text>\n",
                          x, y, kText, Escaped(text));
  }
  void Line(double x1, double y1, double x2, double y2, absl::string_view colour, double width = 1,
            absl::string_view dashes = "") {
    absl::StrAppendFormat(&text_,
                          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                          "stroke-width=\"%g\"%s/>\n",
                          x1, y1, x2, y2, colour, width,
                          dashes.empty() ? "" : absl::StrCat(" stroke-dasharray=\"", dashes, "\""));
  }
  void Path(const std::vector<std::pair<double, double>>& points, absl::string_view colour) {
    if (points.size() < 2) return;
    absl::StrAppend(&text_, "<polyline fill=\"none\" stroke=\"", colour,
                    "\" stroke-width=\"1.5\" stroke-linejoin=\"round\" points=\"");
    for (const auto& [x, y] : points) absl::StrAppendFormat(&text_, "%.1f,%.1f ", x, y);
    text_.pop_back();
    absl::StrAppend(&text_, "\"/>\n");
  }
  // Another form for each series, so that print without colour is read too.
  void Mark(size_t series, double x, double y, double r = kMarkRadius) {
    const absl::string_view colour = Colour(series);
    switch (series % 4) {
      case 0:
        absl::StrAppendFormat(&text_, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\" fill=\"%s\"/>\n", x,
                              y, r, colour);
        return;
      case 1:
        absl::StrAppendFormat(&text_,
                              "<rect x=\"%.1f\" y=\"%.1f\" width=\"%g\" height=\"%g\" "
                              "fill=\"none\" stroke=\"%s\" stroke-width=\"1.4\"/>\n",
                              x - r, y - r, 2 * r, 2 * r, colour);
        return;
      case 2:
        absl::StrAppendFormat(&text_, "<path d=\"M%.1f %.1fl%g %gh%gz\" fill=\"%s\"/>\n", x, y - r,
                              r, 2 * r, -2 * r, colour);
        return;
      default:
        absl::StrAppendFormat(&text_,
                              "<path d=\"M%.1f %.1fl%g %gm0 %gl%g %g\" stroke=\"%s\" "
                              "stroke-width=\"1.4\"/>\n",
                              x - r, y - r, 2 * r, 2 * r, -2 * r, -2 * r, 2 * r, colour);
    }
  }

  void Head(absl::string_view title, absl::string_view subtitle) {
    Text(kMargin, kMargin + 12, "start", kText, 14, title, /*strong=*/true);
    Text(kMargin, kMargin + 28, "start", kFaint, 11, subtitle);
  }

  void Legend(double y, const std::vector<std::string>& names) {
    double x = kMargin + kMarkRadius;
    for (size_t i = 0; i < names.size(); ++i) {
      Mark(i, x, y - 4);
      Text(x + 10, y, "start", kText, 11, names[i]);
      x += 28 + kCharacterWidth * static_cast<double>(names[i].size());
    }
  }

  static absl::string_view Colour(size_t series) {
    return kColours[series % (sizeof(kColours) / sizeof(kColours[0]))];
  }

  std::string Take() { return absl::StrCat(text_, "</svg>\n"); }

 private:
  std::string text_;
};

template <typename Chart>
std::vector<std::string> SeriesNames(const Chart& chart) {
  std::vector<std::string> names;
  for (const auto& series : chart.series) names.push_back(series.name);
  return names;
}

}  // namespace

ChartValue Plain(double value) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  return {value, none, none};
}

ChartValue NoValue() { return Plain(std::numeric_limits<double>::quiet_NaN()); }

std::string DotChartSvg(const DotChart& chart) {
  size_t longest = 0;
  for (const std::string& row : chart.rows) longest = std::max(longest, row.size());
  const double left = kMargin + kCharacterWidth * static_cast<double>(longest) + 10;
  const double top = kMargin + kTitleHeight + kLegendHeight;
  const double bottom = top + kRowHeight * static_cast<double>(chart.rows.size());
  Scale scale(chart.logarithmic, left, kWidth - kMargin - 8);
  for (const DotChart::Series& series : chart.series) {
    for (const ChartValue& value : series.values) {
      for (double each : {value.value, value.low, value.high}) scale.Include(each);
    }
  }
  scale.Finish();

  Canvas canvas(kWidth, bottom + kAxisHeight);
  canvas.Head(chart.title, chart.subtitle);
  canvas.Legend(kMargin + kTitleHeight + 12, SeriesNames(chart));
  for (double tick : scale.Ticks()) {
    canvas.Line(scale.At(tick), top, scale.At(tick), bottom, kGrid);
    canvas.Text(scale.At(tick), bottom + 15, "middle", kFaint, 10, scale.Label(tick));
  }
  for (size_t row : chart.group_starts) {
    const double y = top + kRowHeight * static_cast<double>(row);
    canvas.Line(kMargin, y, kWidth - kMargin, y, kFaint, 0.6);
  }
  for (size_t row = 0; row < chart.rows.size(); ++row) {
    const double y = top + kRowHeight * (static_cast<double>(row) + 0.5);
    canvas.Text(left - 8, y + 3.5, "end", kText, 10.5, chart.rows[row]);
    for (size_t i = 0; i < chart.series.size(); ++i) {
      if (row >= chart.series[i].values.size()) continue;
      const ChartValue& value = chart.series[i].values[row];
      if (!scale.CanShow(value.value)) continue;
      const double at = y + kSeriesShift * (static_cast<double>(i) -
                                            (static_cast<double>(chart.series.size()) - 1) / 2);
      if (scale.CanShow(value.low) && scale.CanShow(value.high)) {
        canvas.Line(scale.At(value.low), at, scale.At(value.high), at, Canvas::Colour(i), 1.2);
      }
      canvas.Mark(i, scale.At(value.value), at);
    }
  }
  canvas.Line(left, bottom, kWidth - kMargin - 8, bottom, kFaint);
  canvas.Text((left + kWidth - kMargin) / 2, bottom + 34, "middle", kText, 11, chart.axis);
  return canvas.Take();
}

std::string LineChartSvg(const LineChart& chart) {
  const double left = kMargin + 56;
  const double right = kWidth - kMargin - 8;
  const double top = kMargin + kTitleHeight + kLegendHeight;
  const double bottom = top + kLinesHeight;
  double first = std::numeric_limits<double>::infinity(), last = -first;
  Scale y(chart.logarithmic, bottom, top);
  if (!chart.level.name.empty()) y.Include(chart.level.value);
  for (const LineChart::Series& series : chart.series) {
    for (const auto& [x, value] : series.points) {
      first = std::min(first, x);
      last = std::max(last, x);
      y.Include(value);
    }
  }
  y.Finish();
  if (first > last) first = last = 0;
  const auto x_at = [&](double x) {
    return first == last ? (left + right) / 2
                         : left + (x - first) / (last - first) * (right - left);
  };

  Canvas canvas(kWidth, bottom + kAxisHeight);
  canvas.Head(chart.title, chart.subtitle);
  canvas.Legend(kMargin + kTitleHeight + 12, SeriesNames(chart));
  for (double tick : y.Ticks()) {
    canvas.Line(left, y.At(tick), right, y.At(tick), kGrid);
    canvas.Text(left - 6, y.At(tick) + 3.5, "end", kFaint, 10, y.Label(tick));
  }
  const double x_step = std::max(1.0, std::ceil((last - first) / 12));
  for (double tick = first; tick <= last; tick += x_step) {
    canvas.Line(x_at(tick), bottom, x_at(tick), bottom + 4, kFaint);
    canvas.Text(x_at(tick), bottom + 15, "middle", kFaint, 10, absl::StrFormat("%g", tick));
  }
  if (!chart.level.name.empty() && y.CanShow(chart.level.value)) {
    const double at = y.At(chart.level.value);
    canvas.Line(left, at, right, at, kText, 1, "5 4");
    canvas.Text(right, at - 5, "end", kText, 10, chart.level.name);
  }
  for (size_t i = 0; i < chart.series.size(); ++i) {
    std::vector<std::pair<double, double>> shown;
    for (const auto& [x, value] : chart.series[i].points) {
      if (y.CanShow(value)) shown.emplace_back(x_at(x), y.At(value));
    }
    canvas.Path(shown, Canvas::Colour(i));
    const double radius = shown.size() > 60 ? 1.8 : kMarkRadius - 0.6;
    for (const auto& [x, at] : shown) canvas.Mark(i, x, at, radius);
  }
  canvas.Line(left, bottom, right, bottom, kFaint);
  canvas.Line(left, top, left, bottom, kFaint);
  canvas.Text((left + right) / 2, bottom + 34, "middle", kText, 11, chart.x_axis);
  canvas.Upright(kMargin + 8, (top + bottom) / 2, chart.y_axis);
  return canvas.Take();
}

}  // namespace plumbline
