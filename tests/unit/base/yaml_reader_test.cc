// SPDX-License-Identifier: Apache-2.0
#include "common/yaml/yaml_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace te {
namespace {

YamlReader read(const std::string& text) { return *YamlReader::parse(text, "a.yaml"); }

TEST(YamlReader, AnEmptyTextIsAnEmptyMap) {
  const YamlReader root = read("");
  EXPECT_TRUE(root.only_keys({"a"}).ok());
  EXPECT_FALSE(root.has("a"));
}

TEST(YamlReader, NamesSourceAndLineOfBadYaml) {
  const auto root = YamlReader::parse("a: 1\nb: [", "a.yaml");
  ASSERT_FALSE(root.ok());
  EXPECT_EQ(root.error().message.rfind("a.yaml:", 0), 0U);
  EXPECT_NE(root.error().message.find("not YAML"), std::string::npos);
}

TEST(YamlReader, NamesTheLineAndTheChoiceForAnUnknownKey) {
  EXPECT_EQ(read("a: 1\nc: 2\n").only_keys({"a", "b"}).error().message,
            "a.yaml:2: unknown key 'c'; expected one of a, b");
}

TEST(YamlReader, RefusesAListWhereAMapIsExpected) {
  EXPECT_NE(read("[1, 2]").only_keys({"a"}).error().message.find("expected a map with the keys a"), std::string::npos);
}

TEST(YamlReader, FindsChildren) { EXPECT_EQ(*read("a: {b: text}").child("a")->string("b"), "text"); }

TEST(YamlReader, NamesThePathOfWhatIsMissing) {
  EXPECT_EQ(read("a:\n  b: 1\n").child("a")->string("c").error().message, "a.yaml:2: a: 'c' is missing");
}

TEST(YamlReader, AnEmptyTextHasAFirstLine) {
  EXPECT_EQ(read("").child("a").error().message, "a.yaml:1: 'a' is missing");
  EXPECT_EQ(read("# nothing").string("a").error().message, "a.yaml:1: 'a' is missing");
}

TEST(YamlReader, RefusesAKeyThatAppearsTwice) {
  const auto error_of = [](const std::string& text) {
    const auto parsed = YamlReader::parse(text, "a.yaml");
    return parsed ? "no error" : parsed.error().message;
  };
  EXPECT_EQ(error_of("mode: a\nb: 1\nmode: b\n"), "a.yaml:3: key 'mode' appears twice");
  EXPECT_EQ(error_of("list:\n  - {a: 1}\n  - {b: {c: 1, c: }}\n"), "a.yaml:3: key 'c' appears twice");
  EXPECT_EQ(error_of("a: {b: 1}\n\"a\": 2\n"), "a.yaml:2: key 'a' appears twice");
}

TEST(YamlReader, AKeyMayAppearInSeveralMaps) {
  EXPECT_TRUE(
      YamlReader::parse("a: {a: a}\nb: &x [{a: 1}, {a: 1}]\nc: [a, a, b, b]\n? [a]\n: a\nd: *x\n", "a.yaml").ok());
}

TEST(YamlReader, AKeyWithoutValueIsMissing) { EXPECT_FALSE(read("a:\n").has("a")); }

TEST(YamlReader, LooksAtTheDocumentAgainAndAgain) {
  const YamlReader root = read("a: 1");
  EXPECT_FALSE(root.has("b"));
  EXPECT_TRUE(root.only_keys({"a"}).ok());  // looking for b did not make it
}

TEST(YamlReader, ReadsLists) {
  const auto list = read("a: [x, y]").list("a");
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 2U);
  EXPECT_EQ(*(*list)[1].scalar(), "y");
}

TEST(YamlReader, AnAbsentListIsEmpty) { EXPECT_TRUE(read("").list("a")->empty()); }

TEST(YamlReader, NamesTheElementOfAList) {
  const auto list = read("a:\n  - x\n  - {b: 1}\n").list("a");
  EXPECT_EQ((*list)[1].scalar().error().message, "a.yaml:3: a[1]: expected one value, not a map or a list");
}

TEST(YamlReader, RefusesAScalarWhereAListIsExpected) {
  EXPECT_EQ(read("a: 1").list("a").error().message, "a.yaml:1: a: expected a list");
}

TEST(YamlReader, GivesTheFallbackForWhatIsAbsent) {
  EXPECT_EQ(*read("").string_or("a", "x"), "x");
  EXPECT_EQ(*read("").integer_or("a", 5, 0, 9), 5);
  EXPECT_EQ(*read("").number_or("a", 0.5, 0, 1), 0.5);
  EXPECT_EQ(*read("").boolean_or("a", true), true);
}

TEST(YamlReader, ReadsIntegersWithinTheirRange) {
  EXPECT_EQ(*read("a: 9").integer_or("a", 5, 0, 9), 9);
  EXPECT_EQ(read("a: 10").integer_or("a", 5, 0, 9).error().message,
            "a.yaml:1: a: expected a whole number from 0 to 9, found '10'");
}

TEST(YamlReader, RefusesIntegersThatAreNone) {
  for (const char* text : {"a: 1.5", "a: ten", "a: 1x", "a: 99999999999999999999", "a: [1]"}) {
    EXPECT_FALSE(read(text).integer_or("a", 0, -100, 100).ok()) << text;
  }
}

TEST(YamlReader, ReadsNumbersWithinTheirRange) {
  EXPECT_EQ(*read("a: 0.25").number_or("a", 0, 0, 1), 0.25);
  for (const char* text : {"a: 1.1", "a: -0.1", "a: nan", "a: .inf", "a: x"}) {
    EXPECT_FALSE(read(text).number_or("a", 0, 0, 1).ok()) << text;
  }
}

TEST(YamlReader, BooleansAreTrueAndFalseOnly) {
  EXPECT_EQ(*read("a: false").boolean_or("a", true), false);
  EXPECT_EQ(read("a: yes").boolean_or("a", true).error().message, "a.yaml:1: a: expected true or false, found 'yes'");
}

}  // namespace
}  // namespace te
