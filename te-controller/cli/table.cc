// SPDX-License-Identifier: Apache-2.0
#include "te-controller/cli/table.h"

#include <algorithm>

#include "common/base/result.h"

namespace te {
namespace {

constexpr std::string_view kGap = "  ";
constexpr const char* kNoteIndent = "      ";

std::string_view code_of(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return "\033[32m";
    case Tone::kWarning:
      return "\033[33m";
    case Tone::kBad:
      return "\033[31m";
    case Tone::kFaint:
      return "\033[2m";
    case Tone::kPlain:
      return "";
  }
  return "";
}

void append_line(std::string& text, const std::vector<Cell>& cells, const std::vector<std::size_t>& widths,
                 const std::vector<bool>& right_aligned, bool colour) {
  std::size_t owed = 0;  // blanks that only matter when more text follows
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t fill = widths[i] - cells[i].text.size();
    if (right_aligned[i]) owed += fill;
    if (!cells[i].text.empty()) {
      text.append(owed, ' ');
      owed = 0;
      text += in_tone(cells[i].text, cells[i].tone, colour);
    }
    if (!right_aligned[i]) owed += fill;
    owed += kGap.size();
  }
  text.push_back('\n');
}

}  // namespace

std::string in_tone(std::string_view text, Tone tone, bool colour) {
  const std::string_view code = colour ? code_of(tone) : std::string_view();
  if (code.empty()) return std::string(text);
  return std::string(code) + std::string(text) + "\033[0m";
}

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {
  for (std::string& heading : headings_) {
    right_aligned_.push_back(heading.starts_with('>'));
    if (right_aligned_.back()) heading.erase(0, 1);
  }
}

void Table::add(std::vector<Cell> row) {
  TE_CHECK(row.size() == headings_.size(), "a table's row has as many cells as there are headings");
  rows_.push_back(std::move(row));
  notes_.emplace_back();
}

void Table::note(std::string text) {
  TE_CHECK(!notes_.empty(), "a note stands under a row");
  notes_.back().push_back(std::move(text));
}

std::string Table::text(bool colour) const {
  std::vector<std::size_t> widths;
  std::vector<Cell> heading;
  for (const std::string& name : headings_) {
    widths.push_back(name.size());
    heading.push_back({name, Tone::kFaint});
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].text.size());
  }
  std::string text;
  append_line(text, heading, widths, right_aligned_, colour);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    append_line(text, rows_[i], widths, right_aligned_, colour);
    for (const std::string& note : notes_[i]) text += kNoteIndent + in_tone(note, Tone::kFaint, colour) + "\n";
  }
  return text;
}

}  // namespace te
