// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace te {

enum class Tone { kPlain, kGood, kWarning, kBad, kFaint };

struct Cell {
  std::string text;
  Tone tone = Tone::kPlain;
};

/// Text in the terminal colour of `tone`, or as it is.
[[nodiscard]] std::string in_tone(std::string_view text, Tone tone, bool colour);

/// Rows under a heading, columns aligned by the widest cell. Cells are ASCII.
class Table {
 public:
  /// A heading that begins with '>' is that of a right-aligned column.
  explicit Table(std::vector<std::string> headings);
  /// As many cells as there are headings.
  void add(std::vector<Cell> row);
  /// A faint line under the last row, indented.
  void note(std::string text);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  /// Lines without trailing blanks, each ended by a newline.
  [[nodiscard]] std::string text(bool colour) const;

 private:
  std::vector<std::string> headings_;
  std::vector<bool> right_aligned_;
  std::vector<std::vector<Cell>> rows_;
  std::vector<std::vector<std::string>> notes_;  ///< by row
};

}  // namespace te
