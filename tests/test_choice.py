"""Which option a final answer names, in the forms that models use, and what names none."""

import pytest
from each_case import each
from growth import grows_linearly
from hypothesis import given
from hypothesis import strategies as st

from ragbed.agents import Scripted
from ragbed.strategies.choice import read_choice

PLACES = (("A", "France"), ("B", "Italy"), ("C", "New York"), ("D", "New York City"))
FORMS = ["{}", "({})", "{}.", "{})", "[{}]", "**{}**", "`{}`", "'{}'", " {}\n", "{} [1]", "{}。", "（{}）",
         "Answer: {}", "Answer:\n{}", "answer - {}", "**Answer:** {}", "**Answer: ({})**", "### Answer\n**{}**",
         "Answer: Option {}", "The answer is {}", "The answer is ({}).", "The correct answer is therefore {}.",
         "The answer to the question is {}.", "The answer is {} because the others are wrong", "Option {}",
         "The best option is {}", "The correct choice is: {}", "option {} it is", "I would choose {}",
         "I would go with option {}.", "So it must be {}.", "It's {}", "=> {}", "{} is correct", "({}) is right.",
         "{} is the best answer", "I think that it is ({}).", "<Answer>{}</Answer>", "<Answer>\n{}\n</Answer>",
         r"\boxed{{{}}}", r"The answer is $\boxed{{\text{{{}}}}}$.", "${}$", r"\({}\)", "\\[\n{}\n\\]",
         "答案：{}", "答案是{}。", "故选{}", "选{}", "정답: {}", "정답은 {}입니다.", "답은 ({})이다", "{}입니다",
         "정답은 {}번", "Ans: {}", "Ans. {}", "My answer: {}", '{{"answer": "{}"}}', "## {}", "Answer:\n- {}",
         "Based on the text, the correct option is ({}).", "I think that {} is the most likely", "답변: {}", "答案选{}",
         "The best answer among the options is {}: it fits.", "Between A and B and C and D, the answer is {}.",
         "First one thing, then another.\n\n{}", "{}\n\nThe others are wrong.", "{}) since it is so", "{}. It is so.",
         "<think>Not A, nor (D).</think>{}", "The options are:\nA. France\nB. Italy\n\nAnswer: {}",
         "Answer: A. No, wait.\nAnswer: {}", "Option A and option B look alike.\n{}"]
LOWER = ["{}", "({})", "{}.", "{})", "answer: {}", "option {}", "the answer is {}.", r"\boxed{{{}}}"]


@each("form", FORMS)
def test_every_label_reads_back_from_every_form(form):
    assert [read_choice(form.format(label), PLACES) for label in "ABCD"] == ["A", "B", "C", "D"]


HEDGED = ["{} because it is warm", "I think {} because it is warm", "I think it is {} because of the sun", "Maybe {}",
          "Probably {}", "Most likely {}.", "{} since it is warm", "{}, as it is warm", "{} due to the sun",
          "I guess {}", "I'd say {}", "My guess: {}", "Clearly, {}", "Without a doubt, {}", "Going with {}",
          "Final: {}", "Well, {}.", "It looks like {}", "That leaves {}", "I vote for {}", "{}, I think",
          "{} for sure", "{} it is", "{} seems right", "{} must be correct", "{} is my choice",
          "It is warm there.\nSo probably {}."]
UNSURE = ["Probably {} or C", "Probably not {}", "I do not think {} because it is warm", "Maybe {}, maybe C",
          "{}? No, C", "Plan {} because it failed", "Neither A nor {} because it is warm", "Probably vitamin {}"]


@each("form", HEDGED)
def test_a_label_with_its_reason_or_with_how_sure_one_is_names_the_option(form):
    assert [read_choice(form.format(label), PLACES) for label in "BCD"] == ["B", "C", "D"]


@each("form", UNSURE)
def test_what_is_unsure_between_options_or_of_another_thing_names_none(form):
    assert read_choice(form.format("B"), PLACES) is None


def test_an_article_before_a_reason_is_no_label():
    assert [read_choice(text, PLACES) for text in ("A because it is warm", "a because it is warm", "Probably a city",
                                                   "I think a city because it is warm")] == ["A", None, None, None]


TEXTS = st.lists(st.text("xyz 0123", min_size=5, max_size=40), min_size=4, max_size=9)


@given(TEXTS, st.sampled_from(FORMS), st.data())
def test_it_reads_back_whatever_the_options_say_and_however_many_there_are(texts, form, data):
    options = tuple(zip("ABCDEFGHI", texts, strict=False))
    label = data.draw(st.sampled_from([label for label, _ in options]))
    assert read_choice(form.format(label), options) == label


@each("form", LOWER)
def test_lower_case_reads_where_it_is_no_word(form):
    assert [read_choice(form.format(label), PLACES) for label in "abcd"] == ["A", "B", "C", "D"]


@each(("text", "label"), [
    ("Italy", "B"), ("italy.", "B"), ("It is Italy.", "B"), ("Answer: Italy", "B"), ("Italy, since it is warm.", "B"),
    ("New York City", "D"), ("It is New York City.", "D"), ("It is New York.", "C"), ("Ｂ", "B"), ("ｂ", "B"),
    ("The answer is B, not A", "B"), ("Option A is wrong, so option B", "B"), ("Option A is right", "A"),
    ("Correct: B", "B"), ("**Correct answer**: B", "B"), ("Since A is wrong and C is wrong, B", "B"),
    ("With A and C ruled out, B.", "B"), ("The answer is not A, but B.", "B"), ("Not A. B", "B"),
    ("It is not (A) but rather (B), since it is warm.", "B"), ("Not A. Not C. B", "B"), ("Answer: A France", "A"),
    ("The answer is A because of this", "A"), ("B\n\nOption A is wrong, and option C too.", "B"),
    # what is denied beside the answer
    ("정답은 B가 아니라 A입니다", "A"), ("B번이 아니라, (A)이다.", "A"), ("不是B，而是A。", "A"),
    ("答案不是B，是A", "A"), ("不选A，选B", "B"), ("选B，不选A", "B"), ("应该选B而不是A", "B"), ("没错，选B", "B"),
    ("B非常合适，选B", "B"),
    ("排除A，选B", "B"), ("A: no. B: yes", "B"), ("A: No\nB: Yes\nC: No\nD: No", "B"), ("A: wrong; (B): right.", "B"),
    ("A - no\nB - yes", "B"), ("A. True story, so to say.", "A"), ("It is Italy, the others are wrong.", "B"),
    ("(B) (B)", "B")])
def test_other_forms(text, label):
    assert read_choice(text, PLACES) == label


@each("form", [
    "Antwort: {}", "Die richtige Antwort ist {}.", "Die Antwort lautet also: {}", "Réponse : {}",
    "La bonne réponse est la {}",
    "La respuesta correcta es la {}.", "Risposta: {}", "La risposta è {}", "Resposta: {}", "Ответ: {}",
    "Правильный ответ — {}.", "Ответ {}", "정답: {}", "정답은 {}입니다", "答案：{}", "答え：{}",
    "答えは{}です", "正解は{}です。",
    "Antwoord: {}", "Svar: {}", "Odpowiedź: {}", "Cevap: {}", "Đáp án: {}", "คำตอบ: {}", "الإجابة: {}", "Ich wähle {}",
    "Je choisis {}", "Вариант {}", "{}选项", "{}?", "{}？", "({})?", "\u200b{}", "{}\u200b",
    "An\u200bswer: {}", "\ufeff{}",
    "**{}**", "✅ {}", "„{}“", "«{}»", "({})", "{}) text", "not A but {}", "It is not A, but {}.", "Answer — {}",
    "rules out C, leaving {}", "The text rules out A and C, leaving option {}.", "C is ruled out, which leaves only {}",
    "Ruling out A, we are left with {}.", "That eliminates A, so only {} remains.", "{} rather than A",
    "{} instead of A."])
def test_labels_are_read_in_many_languages_and_after_what_is_ruled_out(form):
    assert [read_choice(form.format(label), PLACES) for label in "BD"] == ["B", "D"]


@each("text", [
    "A or B?", "A? B?", "Answer: B? or C?", "Antwort: nicht B", "Die Antwort ist nicht B", "Réponse : pas B",
    "La respuesta no es B", "Antwort: A oder B", "Réponse : A ou B", "Ответ: A или B", "Ответ не B", "答えはBではない",
    "rules out D, leaving A or C", "It rules out D", "Antwort: Bonn", "Is it B? No.", "E?"])
def test_in_many_languages_too_none_or_several_named_is_no_choice(text):
    assert read_choice(text, PLACES) is None


def test_yes_and_no_as_options_are_not_said_of_the_labels():
    assert read_choice("B: no", (("A", "yes"), ("B", "no"))) == "B"
    assert read_choice("A: no", (("A", "yes"), ("B", "no"))) is None


@each("text", [
    "", " ", "E", "Spain", "A man walked in", "a man", "The answer is a man", "The answer is A man who came",
    "A or B", "A and B", "B, C", "A\nB", "Answer: A or B", "Answer: A, B", "Answer: A/B", "(A) and (B)",
    "Option A or option B", "A. France\nB. Italy\nC. New York", "France or Italy", "Neither A nor B", "not B",
    "It is not Italy", "The answer is not B", "The answer cannot be A", "Option A is incorrect.", "B. France",
    "The answer is C++", "Hepatitis B is the most likely one", "Plan B", "It is vitamin C and more",
    "Answer: B. France", "Answer: A Italy", "A. Italy", "The answer is A Italy.", "Option A Italy", "option A or B",
    "Incorrect: B", "Not correct: B", "Not A. B, C", "Not A, but B or C", "Not A. B is wrong",
    "A and C are wrong", "B-52 bombers", "A.D. 300", "B.C.", "A's", "Answer: Brazil", "The answer is Batman",
    "I cannot tell", "I cannot answer because the question is unanswerable with the documents.",
    # what is denied, or stands beside another
    "不选B", "我不选 B", "不应该选(B)", "不能选B。", "不是B", "答案不是B", "B不对", "B是错的", "B项并不正确",
    "选项B被排除",
    "답은 B가 아니다", "정답은 B가 아닙니다.", "보기 B는 아니다", "B는 틀렸다", "정답은 B번이 아님", "A: no. B: no",
    "A: yes. B: yes", "B: no", "(A) (B)", "(A)(B)", "Answer: A B", "Italy is wrong", "Italy is the wrong answer",
    "Italy is ruled out.", "The wrong answer is Italy", "Italy는 오답이다"])
def test_none_or_several_named_is_no_choice(text):
    assert read_choice(text, PLACES) is None


WORDS = ["a", "A", "man", "walked", "the", "house", "I", "think", "so", "because", "Dogs", "bark", "at", "Cats", "3",
         "is", "rain", "Because", "it", "was", "late", "and", "who", "knows"]


@given(st.lists(st.sampled_from(WORDS), max_size=30))
def test_unrelated_text_names_nothing(words):
    text = " ".join([*words, "there"])
    assert read_choice(text, PLACES) is None
    assert read_choice(text + ".", [*PLACES, ("E", "Spain")]) is None


@each(("text", "label"), [
    ("3", "A"), ("-3", "B"), ("3.5", "C"), ("35", "D"), ("It is 3.5", "C"), ("It is 3.", "A"), ("it is -3", "B"),
    ("3%", None)])
def test_numbers_are_told_apart_by_their_marks(text, label):
    assert read_choice(text, (("A", "3"), ("B", "-3"), ("C", "3.5"), ("D", "35"))) == label


@pytest.mark.parametrize(("text", "label"), [
    ("No, it does not.", "B"), ("Yes. There is no doubt.", "A"), ("maybe", "C"), ("The answer is no.", "B")])
def test_yes_and_no_are_read_from_the_first_clause(text, label):
    assert read_choice(text, (("A", "yes"), ("B", "no"), ("C", "maybe"))) == label


def test_other_labels_than_letters():
    assert read_choice("정답은 ②번입니다", (("①", "하나"), ("②", "둘"))) == "②"
    assert read_choice("Answer: 2", (("1", "x"), ("2", "y"))) == "2"
    assert read_choice("I", [(label, label * 3) for label in "ABCDEFGHIJ"]) == "I"
    assert read_choice("I think", [(label, label * 3) for label in "ABCDEFGHIJ"]) is None
    assert read_choice("B", (("A", "B"), ("B", "A"))) == "B"
    assert read_choice("same", (("A", "same"), ("B", "Same"))) is None
    assert read_choice("a", ()) is None


@pytest.mark.slow
@pytest.mark.parametrize("piece", [
    "answer ", "answer is ", "(", "B ", "A ", "B\n", "x", " ", "\n ", "answer" + " x" * 9, "\\boxed{", "B.", "option ",
    "option A is not ", "Italy ", "A) ", "answer: A, ", "answer: A or ", "answer (A) ", "A. France\n", "is B\n", "(B)",
    "<answer>", "'", "[ ", "[1", "答案", "(A) is ", "New York ", "not ",
    "option A or ", "not A. ", "answer: A France ", "A: no. ", "(A) (B) ", "不选", "B가 아니라 ", "不是A", "B项",
    "A 번", "Antwort ", "réponse est la ", "leaving ", "答え", "B? ", "Antwort: A oder "])
def test_100_kb_of_anything_take_no_time(piece):
    grows_linearly(lambda n: read_choice(piece * (n // len(piece)), PLACES), 25_000)


@pytest.mark.parametrize(("rules", "reply", "options", "outcome"), [
    ("choice", "(B)", PLACES, "answered"), ("choice", "It is Spain.", PLACES, "malformed"),
    ("choice", "A or B", PLACES, "malformed"), ("closed-book", "B", PLACES, "answered"),
    ("closed-book", "Spain", PLACES, "malformed"), ("closed-book", "Spain", (), "answered"),
    ("grounded", "Spain", PLACES, "answered")])
def test_a_reply_that_names_no_option_is_malformed_and_kept_as_said(rules, reply, options, outcome):
    answer = Scripted([reply], ["Rome."]).play("direct", "Where is Rome?", rules=rules, options=options)
    assert (answer.outcome, answer.text) == (outcome, reply)
