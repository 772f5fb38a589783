// Expression::compile: recursive descent that writes the postfix program as it goes and knows the
// type of every part, so that a program that compiled cannot go wrong when it is computed.
//
// One function a rule, so the nesting of calls is the precedence: Python's, loosest first
//   choice      disjunction ["if" disjunction "else" choice]; below it "or", "and", "not"
//   comparison  sum [("==" | "<" | ...) sum | ["not"] "in" list]; below it sum and product
//   sign        ("-" | "+") sign | power
//   power       primary ["**" sign], hence -2 ** -2 is -(2 ** (-2))
//   primary     name | function "(" choice {"," choice} ")" | "(" choice ")" | literal
// Operands come before their operator, so emitting as each rule ends gives postfix order without a
// tree; `a if c else b` leaves a, c, b on the stack. Every rule that can contain itself passes
// nested(), which counts, and emit() follows the height of the stack: both are bounded.
//
// Types. Numbers, integers, truth values, and words (texts and other JSON values), which are
// compared as places in one table. A power of integers is one itself if the exponent is a literal
// of at least 0, or if `most`, the greatest value of each operand, keeps it within 2^53.
//
// Slips. A listed parameter may only be compared with its values: a rule such as opt == 'sdg' is an
// error with a suggestion, not a rule that never holds.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tuner/space/error_text.h"
#include "tuner/space/expression/expression.h"
#include "tuner/space/expression/expression_tokens.h"

namespace tune::tuner {
namespace {

using Step = Expression::Step;

struct Function {
    const char* name;
    Step step;
    std::size_t arguments_min;
    std::size_t arguments_max;
    bool gives_integer;
};

constexpr std::size_t kManyArguments = 100;

/// Integers beyond 2^53 are not exact as doubles.

constexpr Function kFunctions[] = {
    {"abs", Step::kAbs, 1, 1, false},
    {"ceil", Step::kCeil, 1, 1, true},
    {"exp", Step::kExp, 1, 1, false},
    {"floor", Step::kFloor, 1, 1, true},
    {"log", Step::kLog, 1, 1, false},
    {"log10", Step::kLog10, 1, 1, false},
    {"log2", Step::kLog2, 1, 1, false},
    {"max", Step::kMax, 2, kManyArguments, false},
    {"min", Step::kMin, 2, kManyArguments, false},
    {"pow", Step::kPower, 2, 2, false},
    {"round", Step::kRound, 1, 1, true},
    {"sqrt", Step::kSqrt, 1, 1, false},
};

bool is_number(ValueType type) {
    return type == ValueType::kNumber || type == ValueType::kInteger;
}

const char* type_words(ValueType type) {
    switch (type) {
        case ValueType::kTruth: return "true or false";
        case ValueType::kWord: return "a text or other value";
        default: return "a number";
    }
}

ValueType type_of(const Parameter& parameter) {
    if (parameter.kind == Kind::kFloat) return ValueType::kNumber;
    if (parameter.kind == Kind::kInt) return ValueType::kInteger;
    const auto all = [&](auto is) {
        return std::all_of(parameter.choices.begin(), parameter.choices.end(), is);
    };
    if (all([](const Json& value) { return value.is_number_integer(); }))
        return ValueType::kInteger;
    if (all([](const Json& value) { return value.is_number(); })) return ValueType::kNumber;
    if (all([](const Json& value) { return value.is_boolean(); })) return ValueType::kTruth;
    return ValueType::kWord;
}

/// A part of an expression that is on the stack of the program.
struct Operand {
    ValueType type = ValueType::kNumber;
    std::size_t column = 1;
    std::size_t op = 0;               // its only step, if `bare` or `literal`
    const Parameter* bare = nullptr;  // nothing but a choice, ordinal or const
    std::optional<Json> literal = {};
    std::optional<double> most = {};  // of an integer that is never negative, if it has a bound
};

/// The greatest value of integers that are never negative; nothing for others.
std::optional<double> most_of(const Parameter& parameter, ValueType type) {
    if (type != ValueType::kInteger) return std::nullopt;
    if (parameter.kind == Kind::kInt)
        return parameter.low >= 0 ? std::optional(parameter.high) : std::nullopt;
    double most = 0;
    for (const Json& value : parameter.choices) {
        if (value.get<double>() < 0) return std::nullopt;
        most = std::max(most, value.get<double>());
    }
    return most;
}

/// As above, of `a step b`.
std::optional<double> most_of(Step step, const Operand& a, const Operand& b) {
    if (!a.most || !b.most) return std::nullopt;
    switch (step) {
        case Step::kAdd: return *a.most + *b.most;
        case Step::kMultiply: return *a.most * *b.most;
        case Step::kFloorDivide:
            return b.literal && *b.most > 0 ? std::floor(*a.most / *b.most) : *a.most;
        case Step::kModulo: return b.most;
        case Step::kPower: return std::pow(std::max(*a.most, 1.0), *b.most);
        case Step::kMax: return std::max(*a.most, *b.most);
        case Step::kMin: return std::min(*a.most, *b.most);
        default: return std::nullopt;
    }
}

}  // namespace

class ExpressionParser {
public:
    ExpressionParser(std::string_view text, const Scope& scope, ComparedValues& compared)
        : text_(text), scope_(scope), compared_(compared) {}

    Result<Expression> parse() {
        TUNE_TRY(tokens, tokens_of(text_));
        tokens_ = std::move(tokens);
        TUNE_TRY(whole, choice());
        if (token().kind != Token::Kind::kEnd)
            return error(token(), "expected an operator, found " + found());
        if (deepest_ > kExpressionStackMax)
            return error(tokens_.front(), "the expression is nested too deeply");
        std::vector<std::size_t>& slots = expression_.slots_;
        std::sort(slots.begin(), slots.end());
        slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
        expression_.type_ = whole.type;
        return std::move(expression_);
    }

private:
    const Token& token() const { return tokens_[at_]; }

    bool take(std::string_view symbol) {
        if (!token().is(symbol)) return false;
        ++at_;
        return true;
    }

    std::string found() const {
        return token().kind == Token::Kind::kEnd      ? "the end"
               : token().kind == Token::Kind::kNumber ? "a number"
                                                      : in_quotes(token().text);
    }

    Error error(std::size_t column, std::string_view message) const {
        return expression_error(text_, column, message);
    }
    Error error(const Token& token, std::string_view message) const {
        return error(token.column, message);
    }

    /// Adds a step; `growth`: by how much it changes the stack.
    std::size_t emit(Expression::Op op, int growth) {
        expression_.ops_.push_back(op);
        depth_ = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(depth_) + growth);
        deepest_ = std::max(deepest_, depth_);
        return expression_.ops_.size() - 1;
    }

    /// Bounds the recursion; every rule that can contain itself passes here.
    template <class Rule>
    Result<Operand> nested(Rule rule) {
        if (nesting_ == kExpressionDepthMax)
            return error(token(), "the expression is nested more than " +
                                      std::to_string(kExpressionDepthMax) + " deep");
        ++nesting_;
        Result<Operand> read = rule();
        --nesting_;
        return read;
    }

    Result<void> expect_truth(const Operand& operand) const {
        if (operand.type == ValueType::kTruth) return {};
        return error(operand.column, std::string("expected a condition such as lr > 0.1, found ") +
                                         type_words(operand.type));
    }

    Result<void> expect_number(const Operand& operand) const {
        if (is_number(operand.type)) return {};
        if (operand.bare != nullptr)
            return error(operand.column, in_quotes(operand.bare->name) +
                                             " has values that are not numbers, so there is no "
                                             "arithmetic with it");
        return error(operand.column,
                     std::string("expected a number, found ") + type_words(operand.type));
    }

    // a if c else b
    Result<Operand> choice() {
        TUNE_TRY(first, disjunction());
        if (!take("if")) return first;
        TUNE_TRY(condition, disjunction());
        TUNE_TRY_VOID(expect_truth(condition));
        if (!take("else")) return error(token(), "expected 'else', found " + found());
        TUNE_TRY(second, nested([this] { return choice(); }));
        const bool are_numbers = is_number(first.type) && is_number(second.type);
        if (first.type != second.type && !are_numbers)
            return error(second.column, std::string("expected ") + type_words(first.type) +
                                            " as before 'if', found " + type_words(second.type));
        emit({.step = Step::kSelect}, -2);
        Operand result{.type = first.type, .column = first.column};
        if (first.type != second.type) result.type = ValueType::kNumber;
        return result;
    }

    Result<Operand> disjunction() {
        return joined("or", Step::kOr, [this] { return conjunction(); });
    }

    Result<Operand> conjunction() {
        return joined("and", Step::kAnd, [this] { return negation(); });
    }

    template <class Rule>
    Result<Operand> joined(std::string_view word, Step step, Rule rule) {
        TUNE_TRY(first, rule());
        while (token().is(word)) {
            TUNE_TRY_VOID(expect_truth(first));
            ++at_;
            TUNE_TRY(second, rule());
            TUNE_TRY_VOID(expect_truth(second));
            emit({.step = step}, -1);
            first = Operand{.type = ValueType::kTruth, .column = first.column};
        }
        return first;
    }

    Result<Operand> negation() {
        const std::size_t column = token().column;
        if (!take("not")) return comparison();
        TUNE_TRY(operand, nested([this] { return negation(); }));
        TUNE_TRY_VOID(expect_truth(operand));
        emit({.step = Step::kNot}, 0);
        return Operand{.type = ValueType::kTruth, .column = column};
    }

    bool at_comparison() const {
        for (const char* sign : {"==", "!=", "<", "<=", ">", ">=", "in"})
            if (token().is(sign)) return true;
        return token().is("not") && tokens_[at_ + 1].is("in");
    }

    Result<Operand> comparison() {
        TUNE_TRY(left, sum());
        if (!at_comparison()) return left;
        const Token sign = token();
        ++at_;
        const bool is_negated = sign.is("not") && take("in");
        if (sign.is("in") || is_negated) {
            TUNE_TRY_VOID(among(left));
            if (is_negated) emit({.step = Step::kNot}, 0);
        } else {
            TUNE_TRY(right, sum());
            TUNE_TRY_VOID(compare(left, right, sign));
        }
        if (at_comparison())
            return error(token(), "comparisons do not chain; write a < b and b < c");
        return Operand{.type = ValueType::kTruth, .column = left.column};
    }

    Result<void> compare(const Operand& left, const Operand& right, const Token& sign) {
        const bool is_equality = sign.is("==") || sign.is("!=");
        // A listed parameter and a literal: what is not one of its values is a slip.
        if (left.bare != nullptr && right.literal) {
            TUNE_TRY_VOID(settle(left, right, is_equality));
        } else if (right.bare != nullptr && left.literal) {
            TUNE_TRY_VOID(settle(right, left, is_equality));
        } else {
            const bool are_numbers = is_number(left.type) && is_number(right.type);
            if (!are_numbers && left.type != right.type)
                return error(sign, std::string(type_words(left.type)) + " is compared with " +
                                       type_words(right.type));
            if (!are_numbers && !is_equality)
                return error(sign, "these values have no order; expected == or !=");
        }
        const Step step = sign.is("==")   ? Step::kEqual
                          : sign.is("!=") ? Step::kNotEqual
                          : sign.is("<")  ? Step::kLess
                          : sign.is("<=") ? Step::kLessEqual
                          : sign.is(">")  ? Step::kGreater
                                          : Step::kGreaterEqual;
        emit({.step = step}, -1);
        return {};
    }

    Result<void> settle(const Operand& listed, const Operand& literal, bool is_equality) {
        const Parameter& parameter = *listed.bare;
        const Result<double> internal = parameter.internal(*literal.literal);
        if (is_equality || listed.type == ValueType::kWord) {
            if (!internal) return error(literal.column, internal.error().message);
        }
        if (listed.type != ValueType::kWord) {
            if (is_number(listed.type) && is_number(literal.type)) return {};
            if (listed.type == literal.type && is_equality) return {};
            return error(literal.column, std::string(type_words(listed.type)) +
                                             " is compared with " + type_words(literal.type));
        }
        if (is_equality) {
            expression_.ops_[literal.op].constant =
                compared_.place_of(parameter.choices[static_cast<std::size_t>(*internal)]);
            return {};
        }
        if (parameter.kind != Kind::kOrdinal)
            return error(literal.column, "the values of " + in_quotes(parameter.name) +
                                             " have no order; expected == or !=");
        // Values of an ordinal that are not numbers are ordered by their places.
        expression_.ops_[listed.op] = {.step = Step::kLoad,
                                       .index = expression_.ops_[listed.op].index};
        expression_.ops_[literal.op].constant = *internal;
        return {};
    }

    Result<void> among(const Operand& left) {
        if (!take("["))
            return error(token(), "expected a list such as ['a', 'b'], found " + found());
        Expression::Op op{.step = Step::kAmong, .index = expression_.lists_.size()};
        do {
            const std::size_t column = token().column;
            TUNE_TRY(literal, this->literal());
            double value = 0;
            if (left.bare != nullptr) {
                const Result<double> internal = left.bare->internal(literal);
                if (!internal) return error(column, internal.error().message);
                literal = left.bare->choices[static_cast<std::size_t>(*internal)];
            }
            if (left.type == ValueType::kWord) {
                value = compared_.place_of(literal);
            } else if (left.type == ValueType::kTruth && literal.is_boolean()) {
                value = literal.get<bool>() ? 1 : 0;
            } else if (is_number(left.type) && literal.is_number()) {
                value = literal.get<double>();
            } else {
                return error(column, std::string("expected ") + type_words(left.type));
            }
            expression_.lists_.push_back(value);
            ++op.count;
        } while (take(","));
        if (!take("]")) return error(token(), "expected ',' or ']', found " + found());
        emit(op, 0);
        return {};
    }

    Result<Operand> sum() {
        return chain({{"+", Step::kAdd}, {"-", Step::kSubtract}}, [this] { return product(); });
    }

    Result<Operand> product() {
        return chain({{"*", Step::kMultiply},
                      {"/", Step::kDivide},
                      {"//", Step::kFloorDivide},
                      {"%", Step::kModulo}},
                     [this] { return sign(); });
    }

    template <class Rule>
    Result<Operand> chain(std::initializer_list<std::pair<const char*, Step>> signs, Rule rule) {
        TUNE_TRY(first, rule());
        for (;;) {
            const auto sign = std::find_if(signs.begin(), signs.end(),
                                           [&](const auto& one) { return token().is(one.first); });
            if (sign == signs.end()) return first;
            TUNE_TRY_VOID(expect_number(first));
            ++at_;
            TUNE_TRY(second, rule());
            TUNE_TRY_VOID(expect_number(second));
            emit({.step = sign->second}, -1);
            const bool is_integer = first.type == ValueType::kInteger &&
                                    second.type == ValueType::kInteger &&
                                    sign->second != Step::kDivide;
            first = Operand{.type = is_integer ? ValueType::kInteger : ValueType::kNumber,
                            .column = first.column,
                            .most = most_of(sign->second, first, second)};
        }
    }

    Result<Operand> sign() {
        const std::size_t column = token().column;
        const bool is_minus = token().is("-");
        if (!is_minus && !token().is("+")) return power();
        ++at_;
        TUNE_TRY(operand, nested([this] { return sign(); }));
        TUNE_TRY_VOID(expect_number(operand));
        if (!is_minus) return Operand{.type = operand.type, .column = column};
        Operand result{.type = operand.type, .column = column};
        if (operand.literal) {
            // A number with a sign is a literal too: it may be one of a parameter's values.
            Expression::Op& constant = expression_.ops_[operand.op];
            constant.constant = -constant.constant;
            result.op = operand.op;
            result.literal = operand.type == ValueType::kInteger
                                 ? Json(-operand.literal->get<std::int64_t>())
                                 : Json(constant.constant);
            return result;
        }
        emit({.step = Step::kNegate}, 0);
        return result;
    }

    Result<Operand> power() {
        TUNE_TRY(base, primary());
        if (!take("**")) return base;
        TUNE_TRY_VOID(expect_number(base));
        TUNE_TRY(exponent, nested([this] { return sign(); }));
        TUNE_TRY_VOID(expect_number(exponent));
        emit({.step = Step::kPower}, -1);
        return power_of(base, exponent);
    }

    /// As in Python an integer where both are and the exponent is not negative, as far as it is
    /// certain that it has no more digits than a double.
    static Operand power_of(const Operand& base, const Operand& exponent) {
        const bool is_literal = exponent.literal && exponent.literal->is_number_integer() &&
                                exponent.literal->get<std::int64_t>() >= 0;
        const std::optional<double> most = most_of(Step::kPower, base, exponent);
        const bool is_integer =
            base.type == ValueType::kInteger && (is_literal || (most && *most <= kIntegerMax));
        return Operand{.type = is_integer ? ValueType::kInteger : ValueType::kNumber,
                       .column = base.column,
                       .most = is_integer ? most : std::nullopt};
    }

    Result<Operand> primary() {
        const Token first = token();
        if (first.kind == Token::Kind::kName) {
            ++at_;
            return token().is("(") ? call(first) : name(first);
        }
        if (!first.is("(")) return constant();
        ++at_;
        TUNE_TRY(inner, nested([this] { return choice(); }));
        if (!take(")")) return error(token(), "expected ')', found " + found());
        return Operand{.type = inner.type, .column = first.column, .most = inner.most};
    }

    Result<Operand> call(const Token& name) {
        const auto function =
            std::find_if(std::begin(kFunctions), std::end(kFunctions),
                         [&](const Function& one) { return name.text == one.name; });
        if (function == std::end(kFunctions)) {
            std::vector<std::string> known;
            for (const Function& one : kFunctions) known.emplace_back(one.name);
            return error(
                name, "unknown function " + in_quotes(name.text) + known_words(name.text, known));
        }
        take("(");
        std::size_t count = 0;
        bool are_integers = true;
        Operand joined;
        do {
            TUNE_TRY(argument, nested([this] { return choice(); }));
            TUNE_TRY_VOID(expect_number(argument));
            are_integers = are_integers && argument.type == ValueType::kInteger;
            if (++count > function->arguments_max) break;
            if (count == 1) {
                joined = std::move(argument);
                continue;
            }
            emit({.step = function->step}, -1);
            if (function->step == Step::kPower)
                joined = power_of(joined, argument);
            else
                joined.most = most_of(function->step, joined, argument);
        } while (take(","));
        if (count > function->arguments_max || count < function->arguments_min)
            return error(name,
                         in_quotes(name.text) + " takes " +
                             (function->arguments_max == kManyArguments
                                  ? "2 or more numbers"
                                  : std::to_string(function->arguments_min) +
                                        (function->arguments_min == 1 ? " number" : " numbers")));
        if (!take(")")) return error(token(), "expected ',' or ')', found " + found());
        if (function->arguments_max == 1) emit({.step = function->step}, 0);
        const bool keeps_integer = function->step == Step::kAbs || function->step == Step::kMax ||
                                   function->step == Step::kMin;
        const bool is_integer = function->step == Step::kPower
                                    ? joined.type == ValueType::kInteger
                                    : function->gives_integer || (keeps_integer && are_integers);
        return Operand{
            .type = is_integer ? ValueType::kInteger : ValueType::kNumber,
            .column = name.column,
            .most = keeps_integer || function->step == Step::kPower ? joined.most : std::nullopt};
    }

    Result<Operand> name(const Token& name) {
        Result<Variable> variable = scope_(name.text);
        if (!variable) return error(name, variable.error().message);
        expression_.slots_.push_back(variable->slot);
        Operand operand{.type = variable->type, .column = name.column};
        const Parameter* parameter = variable->parameter;
        if (parameter != nullptr) {
            operand.type = type_of(*parameter);
            operand.most = most_of(*parameter, operand.type);
        }
        if (parameter == nullptr || parameter->kind == Kind::kFloat ||
            parameter->kind == Kind::kInt) {
            emit({.step = Step::kLoad, .index = variable->slot}, 1);
            return operand;
        }
        Expression::Op op{.step = Step::kLoadListed, .index = variable->slot};
        op.list = expression_.tables_.size();
        expression_.tables_.push_back(compared_.table_of(variable->slot, *parameter, operand.type));
        operand.bare = parameter;
        operand.op = emit(op, 1);
        return operand;
    }

    Result<Operand> constant() {
        Operand operand{.column = token().column};
        TUNE_TRY(value, literal());
        Expression::Op op{.step = Step::kConstant};
        if (value.is_number()) {
            op.constant = value.get<double>();
            operand.type = value.is_number_integer() ? ValueType::kInteger : ValueType::kNumber;
            if (value.is_number_integer() && op.constant >= 0) operand.most = op.constant;
        } else if (value.is_boolean()) {
            op.constant = value.get<bool>() ? 1 : 0;
            operand.type = ValueType::kTruth;
        } else {
            op.constant = compared_.place_of(value);
            operand.type = ValueType::kWord;
        }
        operand.op = emit(op, 1);
        operand.literal = std::move(value);
        return operand;
    }

    /// A number (with a sign inside lists), text, true, false, null, or a list of these.
    Result<Json> literal() {
        const Token first = token();
        ++at_;
        if (first.kind == Token::Kind::kText) return Json(first.text);
        if (first.kind == Token::Kind::kNumber) {
            const bool is_exact = first.is_integer && first.number <= 9007199254740992.0;
            return is_exact ? Json(static_cast<std::int64_t>(first.number)) : Json(first.number);
        }
        if (first.is("true") || first.is("True")) return Json(true);
        if (first.is("false") || first.is("False")) return Json(false);
        if (first.is("null") || first.is("None")) return Json();
        if (first.is("-") && token().kind == Token::Kind::kNumber) {
            TUNE_TRY(value, literal());
            return value.is_number_integer() ? Json(-value.get<std::int64_t>())
                                             : Json(-value.get<double>());
        }
        --at_;
        if (!first.is("[")) return error(first, "expected a value or a name, found " + found());
        return list();
    }

    Result<Json> list() {
        Json list = Json::array();
        if (++nesting_ > kExpressionDepthMax)
            return error(token(), "the expression is nested more than " +
                                      std::to_string(kExpressionDepthMax) + " deep");
        take("[");
        do {
            TUNE_TRY(item, literal());
            list.push_back(std::move(item));
        } while (take(","));
        --nesting_;
        if (!take("]")) return error(token(), "expected ',' or ']', found " + found());
        return list;
    }

    std::string_view text_;
    const Scope& scope_;
    ComparedValues& compared_;
    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    std::size_t depth_ = 0;
    std::size_t deepest_ = 0;
    int nesting_ = 0;
    Expression expression_;
};

Result<Expression> Expression::compile(std::string_view text, const Scope& scope,
                                       ComparedValues& compared) {
    return ExpressionParser(text, scope, compared).parse();
}

}  // namespace tune::tuner
