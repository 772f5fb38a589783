// Filters and the sentences for bad ones. The expected texts were taken from mlflow 3.17.2
// (SearchUtils, SearchExperimentsUtils, search_logged_model_utils) for the same inputs.

#include "tracker/search/filter.h"
#include "base/text/number_text.h"

#include <gtest/gtest.h>

#include <cctype>
#include <span>
#include <string>
#include <utility>

#include "base/text/python_text.h"

namespace tune::tracker::search {
namespace {

std::string text_of(const FilterValue& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
    if (const auto* real = std::get_if<double>(&value)) return number_text(*real);
    if (const auto* text = std::get_if<std::string>(&value)) return python_repr(*text);
    if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
        std::string out = "(";
        for (const std::string& item : *list) out += python_repr(item) + ",";
        return out + ")";
    }
    return "-";
}

constexpr const char* kEntities[] = {"attribute", "metric", "param", "tag", "dataset"};
constexpr const char* kComparators[] = {
    "=", "!=", "<", "<=", ">", ">=", "LIKE", "ILIKE", "IN", "NOT IN", "IS NULL", "IS NOT NULL"};

std::string text_of(const Condition& condition, bool is_inner) {
    using Kind = Condition::Kind;
    if (condition.kind == Kind::kClause) {
        const Clause& clause = condition.clause;
        return std::string(kEntities[static_cast<int>(clause.entity)]) + " " + clause.key + " " +
               kComparators[static_cast<int>(clause.comparator)] + " " + text_of(clause.value);
    }
    if (condition.kind == Kind::kNot) return "!" + text_of(condition.parts.front(), true);
    std::string out;
    for (const Condition& part : condition.parts)
        out += (out.empty()                   ? ""
                : condition.kind == Kind::kOr ? " | "
                                              : " & ") +
               text_of(part, true);
    return is_inner ? "[" + out + "]" : out;
}

/// "metric a > 1.0 & [tag b = 'x' | !tag c = 'y']", or the error's sentence.
std::string parsed(Subject subject, const std::string& filter) {
    const auto condition = parse_filter(subject, filter);
    if (condition) return text_of(*condition, false);
    EXPECT_EQ(condition.error().code, Code::kInvalidParameterValue);
    return condition.error().message;
}

struct Case {
    const char* filter;
    const char* expected;
};

void expect_all(Subject subject, std::span<const Case> cases) {
    for (const Case& one : cases)
        EXPECT_EQ(parsed(subject, one.filter), one.expected) << one.filter;
}

TEST(RunFilter, ReadsTheWholeGrammar) {
    const Case cases[] = {
        {"", ""},
        {"metrics.a > 1", "metric a > 1.0"},
        {"metrics.a>1", "metric a > 1.0"},
        {"metric.a <= -1.5", "metric a <= -1.5"},
        {"metrics.a > 1e-3", "metric a > 0.001"},
        {"metrics.a != .5", "metric a != 0.5"},
        {"metrics.a > 1 AND", "metric a > 1.0"},
        {"AND metrics.a > 1", "metric a > 1.0"},
        {"metrics.a > 1 metrics.b > 2", "metric a > 1.0 & metric b > 2.0"},
        {"params.a = 'x'", "param a = 'x'"},
        {"parameters.a = \"x\"", "param a = 'x'"},
        {"param.a like '%x'", "param a LIKE '%x'"},
        {"params.a ILIKE 'x'", "param a ILIKE 'x'"},
        {"params.\"a b\" = 'x'", "param a b = 'x'"},
        {"params.`a b` = 'x'", "param a b = 'x'"},
        {"params.a.b.c = 'x'", "param a.b.c = 'x'"},
        {"params.a = ''", "param a = ''"},
        {"status = 'FINISHED'", "attribute status = 'FINISHED'"},
        {"attr.status != 'x'", "attribute status != 'x'"},
        {"run_id IN ('a','b')", "attribute run_id IN ('a','b',)"},
        {"run_id in ('a')", "attribute run_id IN ('a',)"},
        {"run_id NOT  IN ('a',)", "attribute run_id NOT IN ('a',)"},
        {"run_id IN ('UPPER')", "attribute run_id IN ('UPPER',)"},
        {"start_time > 10", "attribute start_time > 10"},
        {"start_time > 1.5", "attribute start_time > 1.5"},
        {"created > 1", "attribute start_time > 1"},
        {"`run name` = 'x'", "tag mlflow.runName = 'x'"},
        {"attributes.\"Run Name\" = 'x'", "tag mlflow.runName = 'x'"},
        {"run_name like 'a%'", "tag mlflow.runName LIKE 'a%'"},
        {"tags.a IS NULL", "tag a IS NULL -"},
        {"tag.a is   not null", "tag a IS NOT NULL -"},
        {"params.a IS NULL", "param a IS NULL -"},
        {"datasets.name = 'x'", "dataset name = 'x'"},
        {"dataset.context IN ('a')", "dataset context IN ('a',)"},
        {"tags.'a' = 'x'", "tag a = 'x'"},
        {"tags.a = 'it''s'", "tag a = \"it''s\""},
        {"tags. = 'x'", "tag  = 'x'"},
        {"tags.a = 'x' AND AND tags.b = 'y'", "tag a = 'x' & tag b = 'y'"},
        {"tags.a='x'AND tags.b='y'", "tag a = 'x' & tag b = 'y'"},
        {"tags.mlflow.source.name = 'x'", "tag mlflow.source.name = 'x'"},
        {"tags.group = 'x' and params.order = '1'", "tag group = 'x' & param order = '1'"},
        {"tags.`a.b` = 'x'", "tag a.b = 'x'"},
        {"tags.käse = 'x'", "tag käse = 'x'"},
        {"metrics.1a > 1", "metric 1a > 1.0"},
        {"tags.a = 'x AND y'", "tag a = 'x AND y'"},
        {"tags.a = '; DROP TABLE runs; --'", "tag a = '; DROP TABLE runs; --'"},
    };
    expect_all(Subject::kRuns, cases);
}

TEST(RunFilter, RefusesWithMlflowsSentence) {
    const char* kAttributes =
        "{'artifact_uri', 'created', 'Created', 'end_time', 'run_id', 'run_name', 'start_time', "
        "'status', 'user_id', 'run name', 'Run name', 'Run Name'}'";
    const std::string bogus =
        "Invalid attribute key 'bogus' specified. Valid keys are '" + std::string(kAttributes);
    const Case cases[] = {
        {"a", "Invalid clause(s) in filter string: 'a'"},
        {"metrics.a >", "Invalid clause(s) in filter string: 'metrics.a', '>'"},
        {"> 1", "Invalid clause(s) in filter string: '>', '1'"},
        {"('a') = 'b'", "Invalid comparison clause. Expected 'Identifier' found '('a')'"},
        {"metrics.a > '1'", "Expected numeric value type for metric. Found '1'"},
        {"metrics.a > nan", "Expected numeric value type for metric. Found nan"},
        {"metrics.a > 1_000", "Expected numeric value type for metric. Found 1_000"},
        {"metrics.a > 0x10", "Invalid clause(s) in filter string: 'metrics.a', '>', '0x10'"},
        {"metrics.a = +1", "Invalid clause(s) in filter string: 'metrics.a', '=', '+', '1'"},
        {"metrics.a IN (1)", "Expected numeric value type for metric. Found (1)"},
        {"params.a = 1",
         "Expected a quoted string value for parameter (e.g. 'my-value'). Got value 1"},
        {"tags.a IN ('x')",
         "Expected a quoted string value for tag (e.g. 'my-value'). Got value ('x')"},
        {"params.a = x",
         "Parameter value is either not quoted or unidentified quote types used for string value "
         "x. Use either single or double quotes."},
        {"params.a = `x`",
         "Parameter value is either not quoted or unidentified quote types used for string value "
         "`x`. Use either single or double quotes."},
        {"params.a b = 'x'", "Invalid clause(s) in filter string: 'params.a'"},
        {"run name = 'x'", "Invalid clause(s) in filter string: 'run'"},
        {"foo.a = 'x'",
         "Invalid entity type 'foo'. Valid values are ['metric', 'parameter', 'tag', 'attribute', "
         "'dataset']"},
        {"bogus = 'x'", bogus.c_str()},
        {"attributes.bogus='x'", bogus.c_str()},
        {"attribute.status IN ('a','b')",
         "Only ['run_id'] attributes support comparison with a list of quoted string values."},
        {"run_id IN ()",
         "While parsing a list in the query, expected a non-empty list of string values, but got "
         "empty list"},
        {"run_id IN (1,2)",
         "While parsing a list in the query, expected string value, punctuation, or whitespace, "
         "but got different type in list: (1,2)"},
        {"run_id IN ('a' 'b')",
         "While parsing a list in the query, expected a non-empty list of string values, but got "
         "ill-formed list."},
        {"run_id IN 'a'", "Invalid clause(s) in filter string: 'run_id', 'IN', ''a''"},
        {"start_time > 'a'",
         "Expected numeric value type for numeric attribute: start_time. Found 'a'"},
        {"start_time LIKE 'a'",
         "Expected numeric value type for numeric attribute: start_time. Found 'a'"},
        {"params.a = 'x' params.b IS NULL",
         "Invalid clause(s) in filter string: 'params.b', 'IS NULL'"},
        {"metrics.x IS NULL",
         "IS NULL / IS NOT NULL is only supported for tags and params, not for 'metric' 'x'"},
        {"run_id IS NULL",
         "IS NULL / IS NOT NULL is only supported for tags and params, not for 'attribute' "
         "'run_id'"},
        {"tags.a IS", "Invalid clause(s) in filter string: 'tags.a', 'IS'"},
        {"dataset.name = 3", "Expected a quoted string value for dataset attributes. Got value 3"},
        {"metrics.a > 1; metrics.b > 1",
         "Search filter contained multiple expression 'metrics.a > 1; metrics.b > 1'. Provide "
         "AND-ed expression list."},
        {"metrics.a > 1;", "Invalid clause(s) in filter string: ';'"},
        {"tags.a = 'x' -- comment", "Invalid clause(s) in filter string: '-- comment'"},
        {"tags.a = 'unterminated",
         "Invalid clause(s) in filter string: 'tags.a', '=', ''', 'unterminated'"},
        {".a = 'x'", "Invalid clause(s) in filter string: '.'"},
        {"   ", "Invalid filter '   '. Could not be parsed."},
        {"'a' = 'b'", "Invalid comparison clause. Expected 'Identifier' found ''a''"},
        {"1 = 1", "Invalid comparison clause. Expected 'Identifier' found '1'"},
        {"tags.a-b = 'x'", "Invalid comparison clause. Expected 'Identifier' found 'tags.a-b'"},
        {"tags.a/b = 'x'", "Invalid comparison clause. Expected 'Identifier' found 'tags.a/b'"},
        {"tags.user:x = 'a'", "Invalid clause(s) in filter string: 'tags.user', ':'"},
        {"metrics.a => 1", "Invalid comparator '=>' not one of '{'!=', '<', '<=', '=', '>', '>='}"},
        {"params.a > 'x'",
         "Invalid comparator '>' not one of '{'!=', '=', 'ILIKE', 'IS NOT NULL', 'IS NULL', "
         "'LIKE'}'"},
        {"tags.a not like 'x'",
         "Invalid comparator 'NOT LIKE' not one of '{'!=', '=', 'ILIKE', 'IS NOT NULL', 'IS "
         "NULL', 'LIKE'}"},
        {"tags.a <> 'x'",
         "Invalid comparator '<>' not one of '{'!=', '=', 'ILIKE', 'IS NOT NULL', 'IS NULL', "
         "'LIKE'}"},
        {"user_id > 'x'",
         "Invalid comparator '>' not one of '{'!=', '=', 'ILIKE', 'IN', 'LIKE', 'NOT IN'}'"},
        {"run_id = ('a')", "Invalid comparator '=' for a list of values."},
    };
    expect_all(Subject::kRuns, cases);
}

TEST(BooleanFilter, AndBindsTighterThanOrAndNotTighterThanBoth) {
    const std::string a = "tag a = 'x'";
    const std::string b = "tag b = 'x'";
    const std::string c = "tag c = 'x'";
    const std::pair<const char*, std::string> cases[] = {
        {"A OR B", a + " | " + b},
        {"A or B Or C", a + " | " + b + " | " + c},
        {"A AND B OR C", "[" + a + " & " + b + "] | " + c},
        {"A OR B AND C", a + " | [" + b + " & " + c + "]"},
        {"(A OR B) AND C", "[" + a + " | " + b + "] & " + c},
        {"A AND (B OR C)", a + " & [" + b + " | " + c + "]"},
        {"(A)", a},
        {"((A))", a},
        {"A AND (B AND C)", a + " & " + b + " & " + c},
        {"(A OR B) OR C", a + " | " + b + " | " + c},
        {"NOT A", "!" + a},
        {"not A AND B", "!" + a + " & " + b},
        {"NOT (A AND B)", "![" + a + " & " + b + "]"},
        {"NOT NOT A", "!!" + a},
        {"NOT(A)OR(B)", "!" + a + " | " + b},
        {"A\tOR\n(B)", a + " | " + b},
    };
    for (const auto& [text, expected] : cases) {
        std::string filter;
        for (const char* c_ = text; *c_ != '\0'; ++c_) {
            const bool is_name = std::string_view("ABC").find(*c_) != std::string_view::npos &&
                                 !std::isalpha(static_cast<unsigned char>(c_[1])) &&
                                 (c_ == text || !std::isalpha(static_cast<unsigned char>(c_[-1])));
            if (is_name)
                filter += std::string("tags.") + static_cast<char>(*c_ - 'A' + 'a') + " = 'x'";
            else
                filter += *c_;
        }
        EXPECT_EQ(parsed(Subject::kRuns, filter), expected) << filter;
    }
}

TEST(BooleanFilter, GoesWithAllClauses) {
    const Case cases[] = {
        {"run_id IN ('a') OR run_id NOT IN ('b')",
         "attribute run_id IN ('a',) | attribute run_id NOT IN ('b',)"},
        {"NOT run_id IN ('a')", "!attribute run_id IN ('a',)"},
        {"(tags.`a)b` = ')' OR tags.a = \"(\")", "tag a)b = ')' | tag a = '('"},
        {"tags.a IS NULL OR NOT tags.b IS NOT NULL", "tag a IS NULL - | !tag b IS NOT NULL -"},
        {"params.or = 'OR' OR params.not = 'NOT'", "param or = 'OR' | param not = 'NOT'"},
        {"(metrics.a>1)AND(metrics.b<2)", "metric a > 1.0 & metric b < 2.0"},
    };
    expect_all(Subject::kRuns, cases);
    EXPECT_EQ(parsed(Subject::kExperiments, "name = 'a' OR NOT tags.b = 'c'"),
              "attribute name = 'a' | !tag b = 'c'");
    EXPECT_EQ(parsed(Subject::kLoggedModels, "name = 'a' OR (metrics.b > 1 AND name = 'c')"),
              "attribute name = 'a' | [metric b > 1.0 & attribute name = 'c']");
}

TEST(BooleanFilter, ErrorsNameTheCharacter) {
    const Case cases[] = {
        {"metrics.a > 1 OR",
         "Invalid filter string: at character 17 a comparison such as metrics.loss < 0.1 is "
         "missing."},
        {"OR metrics.a > 1",
         "Invalid clause(s) in filter string: 'OR' at character 1. Expected a comparison such as "
         "metrics.loss < 0.1."},
        {"tags.ä = 'ü' OR AND tags.b = 'x'",
         "Invalid clause(s) in filter string: 'AND' at character 17. Expected a comparison such "
         "as metrics.loss < 0.1."},
        {"metrics.a > 1 OR metrics.b > 2 AND",
         "Invalid filter string: at character 35 a comparison such as metrics.loss < 0.1 is "
         "missing."},
        {"metrics.a > 1 (metrics.b > 2)",
         "Invalid clause(s) in filter string: '(metrics.b > 2)' at character 15. Expected AND, OR "
         "or the end."},
        {"(metrics.a > 1 metrics.b > 2)",
         "Invalid clause(s) in filter string: 'metrics.b' at character 16. Expected AND, OR or "
         "the end."},
        {"metrics.a > 1 AND ()",
         "Invalid filter string: at character 20 a comparison such as metrics.loss < 0.1 is "
         "missing."},
        {"NOT",
         "Invalid filter string: at character 4 a comparison such as metrics.loss < 0.1 is "
         "missing."},
        {"(metrics.a > 1 OR bogus)",
         "Invalid clause(s) in filter string: 'bogus' at character 19. Expected a comparison such "
         "as metrics.loss < 0.1."},
        {"NOT (metrics.a > 1", "Invalid filter string: the '(' at character 5 is not closed."},
        {"NOT metrics.a > 1)", "Invalid filter string: the ')' at character 18 closes nothing."},
        {"metrics.a > 1 OR foo.a = 'x'",
         "Invalid entity type 'foo'. Valid values are ['metric', 'parameter', 'tag', 'attribute', "
         "'dataset']"},
    };
    expect_all(Subject::kRuns, cases);
}

TEST(BooleanFilter, HasLimits) {
    const auto nested = [](int levels, const char* opening, const char* closing) {
        std::string text;
        for (int i = 0; i < levels; ++i) text += opening;
        text += "metrics.a > 1";
        for (int i = 0; i < levels; ++i) text += closing;
        return parsed(Subject::kRuns, text);
    };
    EXPECT_EQ(nested(kFilterDepthMax, "(", ")"), "metric a > 1.0");
    EXPECT_EQ(nested(kFilterDepthMax + 1, "(", ")"),
              "The filter nests deeper than 16 levels of parentheses and NOT, at character 18.");
    EXPECT_EQ(nested(kFilterDepthMax, "NOT ", "").substr(0, 3), "!!!");
    EXPECT_EQ(nested(100'000 / 4, "NOT ", "").substr(0, 31), "The filter nests deeper than 16");
    EXPECT_EQ(nested(50'000, "(", ")").substr(0, 31), "The filter nests deeper than 16");
    std::string many = "metrics.a > 1";
    for (std::size_t i = 0; i < kFilterClausesMax; ++i) many += " OR metrics.a > 1";
    EXPECT_EQ(parsed(Subject::kRuns, many), "The filter has more than 200 clauses.");
}

TEST(ExperimentFilter, ReadsTheWholeGrammar) {
    const Case cases[] = {
        {"name = 'a'", "attribute name = 'a'"},
        {"name LIKE 'a%'", "attribute name LIKE 'a%'"},
        {"attribute.name ilike 'x'", "attribute name ILIKE 'x'"},
        {"tags.a='x' AND tag.b IS NULL", "tag a = 'x' & tag b IS NULL -"},
        {"experiment_id = '1'", "attribute experiment_id = '1'"},
        {"experiment_id NOT IN ('1','2')", "attribute experiment_id NOT IN ('1','2',)"},
        {"creation_time >= 1", "attribute creation_time >= 1"},
        {"last_update_time != 5", "attribute last_update_time != 5"},
    };
    expect_all(Subject::kExperiments, cases);
}

TEST(ExperimentFilter, RefusesWithMlflowsSentence) {
    const Case cases[] = {
        {"foo", "Invalid clause(s) in filter string: foo"},
        {"attributes.name='x'",
         "Invalid entity type 'attributes'. Valid entity types are ('attribute', 'tag', 'tags')"},
        {"metrics.a > 1",
         "Invalid entity type 'metrics'. Valid entity types are ('attribute', 'tag', 'tags')"},
        {"name IS NULL",
         "IS NULL / IS NOT NULL is only supported for tags, not for attribute 'name'"},
        {"experiment_id = 1", "Expected a quoted string value for attributes. Got value 1"},
        {"experiment_id > '1'", "Invalid comparator for experiment_id: >"},
        {"experiment_id = 'x'",
         "Invalid experiment ID 'x'. Experiment ID must be a valid integer."},
        {"creation_time > 1.5", "Invalid value for numeric attribute 'creation_time': '1.5'"},
        {"creation_time > 'a'",
         "Expected numeric value type for numeric attribute: creation_time. Found 'a'"},
        {"name IN ('a')",
         "Only ['experiment_id'] attributes support comparison with a list of quoted string "
         "values."},
        {"name > 'a'",
         "Invalid comparator '>' not one of '{'!=', '=', 'ILIKE', 'IN', 'LIKE', 'NOT IN'}'"},
        {"tags.a > 'x'", "Invalid comparator for tag: >"},
        {"bogus = 'x'",
         "Invalid attribute key 'bogus' specified. Valid keys are '{'creation_time', "
         "'experiment_id', 'last_update_time', 'name'}'"},
    };
    expect_all(Subject::kExperiments, cases);
}

TEST(LoggedModelFilter, ReadsTheWholeGrammar) {
    const Case cases[] = {
        {"name = 'a'", "attribute name = 'a'"},
        {"name like 'a%'", "attribute name LIKE 'a%'"},
        {"name IN ('a','b')", "attribute name IN ('a','b',)"},
        {"tags.a NOT IN ('x')", "tag a NOT IN ('x',)"},
        {"params.a = 'x' AND metrics.`a b` > 1", "param a = 'x' & metric a b > 1.0"},
        {"creation_timestamp > 1", "attribute creation_time > 1"},
        {"last_updated_timestamp <= 7", "attribute last_updated_time <= 7"},
        {"attributes.model_id='m-1'", "attribute model_id = 'm-1'"},
    };
    expect_all(Subject::kLoggedModels, cases);
}

TEST(LoggedModelFilter, RefusesWithMlflowsSentence) {
    const Case cases[] = {
        {"attribute.name='x'",
         "Invalid entity type: 'attribute'. Expected one of ['attributes', 'metrics', 'params', "
         "'tags']."},
        {"metrics.a LIKE 'x'",
         "Invalid comparison operator for metrics.a: 'LIKE'. Expected one of ('<', '<=', '>', "
         "'>=', '=', '!=')."},
        {"name > 'a'",
         "Invalid comparison operator for attributes.name: '>'. Expected one of ('=', '!=', "
         "'LIKE', 'ILIKE', 'IN', 'NOT IN')."},
        {"name = 'a', name='b'",
         "Invalid filter string: \"name = 'a', name='b'\". Expected a list of comparisons "
         "separated by 'AND' (e.g. 'metrics.loss > 0.1 AND params.lr = 0.01')."},
        {"a; b", "Invalid filter string: 'a; b'. Expected a single SQL expression."},
        {"tags.a IS NULL",
         "Invalid comparison: tags.a IS NULL. Expected a comparison with 3 tokens."},
        {"metrics.a > 'a'", "Expected numeric value type for metric. Found 'a'"},
    };
    expect_all(Subject::kLoggedModels, cases);
}

TEST(Filter, HasLimits) {
    EXPECT_EQ(parsed(Subject::kRuns, std::string(kFilterBytesMax + 1, 'a')),
              "The filter is longer than 262144 bytes.");
    std::string many;
    for (std::size_t i = 0; i <= kFilterClausesMax; ++i) many += "metrics.a > 1 AND ";
    EXPECT_EQ(parsed(Subject::kRuns, many),
              "The filter has 201 clauses; at most 200 are supported.");
    std::string list = "run_id IN ('a'";
    for (std::size_t i = 0; i < kFilterListValuesMax; ++i) list += ",'a'";
    EXPECT_EQ(parsed(Subject::kRuns, list + ")"),
              "The lists of the filter hold 10001 values; at most 10000 are supported.");
    EXPECT_EQ(
        parsed(Subject::kRuns, "tags.a LIKE '" + std::string(kLikePatternBytesMax + 1, '%') + "'"),
        "The pattern of LIKE is longer than 8192 bytes.");
}

TEST(PythonText, QuotesAsPythonDoes) {
    EXPECT_EQ(python_repr("it's"), "\"it's\"");
    EXPECT_EQ(python_repr("a'b\"c"), "'a\\'b\"c'");
}

}  // namespace
}  // namespace tune::tracker::search
