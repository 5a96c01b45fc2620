"""Whether a solver's draft is right: by its text, its figures and its names, neither lenient nor strict."""
from each_case import each

from ragbed.experiments.guests.construct.answer_matching import is_correct
from ragbed.experiments.guests.review.items import Item
from ragbed.strategies.types import Draft


def draft(text, **fields):
    return Draft(text, (), **{"refused": False, "well_formed": True, "tagged": True} | fields)


CASES = [  # question, answer, drafts that are right, drafts that are wrong
    ("When did the depot open?", "March 20, 1911", ["20 March 1911", "It opened on 20 March 1911.", "1911-03-20"],
     ["March 21, 1911", "1911"]),
    ("In which year did the depot open?", "1911", ["March 20, 1911", "in 1911"],
     ["1912", "1911 or 1912", "Between 1911 and 1915"]),
    ("개점일은 언제인가요?", "2019년 3월 20일", ["2019-03-20", "2019.3.20", "2019년 3월 20일입니다."],
     ["2019년 3월 2일"]),
    ("How heavy is the load?", "12.5 tonnes", ["12.5 tonnes."], ["125 tonnes", "12.5 kilograms"]),
    ("How many tonnes is the load?", "12.5 tonnes", ["12.5"], []),
    ("How many tonnes is the load?", "12.5", ["12.5 tonnes"], []),
    ("What share was it?", "54%", ["54 percent", "54 %", "54 per cent of all cases", "0.54"], ["45%"]),
    ("What was the FY2018 capex of 3M in USD millions?", "$1577.00",
     ["1,577", "$1,577 million", "1577.0 million USD"], ["$1,577 billion", "15770"]),
    ("What was revenue?", "$1.5 billion", ["$1,500 million", "1,500,000,000 dollars"], ["$1.5 million"]),
    ("최저자본금은 얼마인가요?", "250억원", ["250억 원입니다.", "25,000,000,000원"],
     ["25억원", "1,000억원", "250억원 또는 1000억원입니다."]),
    ("Who built the crane?", "Ada Lindqvist",
     ["Ada Lindqvist of Lund", "The crane was built by Ada Lindqvist.", "Lindqvist",
      "It was Ada Lindqvist, not Greta Holm."],
     ["Ada", "Greta Lindqvist", "Ada Lindqvist or Greta Holm", "Not Ada Lindqvist but Greta Holm",
      "Greta Holm, Ada Lindqvist, Per Ek, Olof Berg"]),
    ("Who wrote it?", "Sir Arthur Conan Doyle", ["Arthur Conan Doyle"], []),
    ("Who wrote it?", "Arthur Conan Doyle", ["Sir Arthur Conan Doyle"], []),
    ("Who led the bank?", "김하늘", ["김하늘입니다.", "은행장은 김하늘이다."], ["김하늘이 아니라 박서준입니다."]),
    ("은행장은 누구인가요?", "김하늘", [], ["김하늘 또는 박서준", "박하늘"]),
    ("Was the mill at Rosk of oak?", "yes", ["Yes, it was of oak."], ["No.", "It was not of oak."]),
    ("Was the mill at Rosk of oak?", "no", ["No, it was of pine."], ["There is no information about that."]),
    ("이자율이 올랐나요?", "예", ["네, 올랐습니다."], ["아니요"]),
    ("이자율이 올랐나요?", "아니요", ["아니오"], []),
    ("Which mineral is used?", "titanium dioxide", ["Titanium dioxide (TiO2)"], ["titanium"]),
    ("Which colour is the wheel?", "blue", ["blue", "The wheel is blue."],
     ["blue-green", "The document does not say which colour the wheel is, though the door is blue."]),
    ("Why did the yard close?", "a fire that nobody explained", ["Because of a fire nobody explained."], []),
    ("Why did the yard close?", "It closed after a fire that nobody explained",
     ["after a fire that nobody explained"], ["an unexplained fire", "It closed after a strike."]),
    ("How much does the crane of the Esk depot lift?", "The crane of the Esk depot lifts 12.5 tonnes.",
     ["12.5 tonnes"], ["The crane of the Esk depot lifts 21.5 tonnes.", "The crane of the Esk depot"]),
    ("Which two towns does the line join?", "Lund and Rosk", ["Rosk and Lund"], ["Lund"]),
    ("Which two towns does the line join?", "Lund, Rosk", ["Lund and Rosk"], []),
    ("군산의 공원 이름은?", "달빛공원", ["달빛 공원"], ["별빛공원"]),
    ("에스크 은행의 최저자본금은 얼마인가요?", "에스크 은행의 최저자본금은 250억원입니다.", ["250억원"],
     ["에스크 은행의 최저자본금은 350억원입니다."]),
    ("How many were there?", "three", ["3"], []),
    ("How many were there?", "3", ["three"], ["three or four"]),
    ("How many were there?", "13", [], ["three"]),
    ("What is the ratio?", "0.83", ["0.83 times"], ["0.8"]),
    ("What is the margin?", "-1.7%", ["-1.7%"], ["a decline of 1.7%"]),
    ("Which name has it?", "The A Train", ["A Train"], [])]


@each(("question", "answer", "good", "bad"), CASES)
def test_a_draft_is_right_where_it_gives_the_answer_in_any_notation_and_no_other_beside_it(question, answer, good, bad):
    item = Item("i", question, (answer,))
    assert [text for text in good if not is_correct(item, draft(text))] == []
    assert [text for text in bad if is_correct(item, draft(text))] == []


def test_of_options_the_right_one_alone_is_named():
    item = Item("i", "What did the mill grind?", ("barley",), options=("wheat", "barley", "oats"))
    said = {"B": True, "B. barley": True, "The mill ground barley.": True, "A": False, "A or B": False, "oats": False}
    assert {text: is_correct(item, draft(text)) for text in said} == said


def test_a_refusal_and_what_holds_no_answer_are_never_right():
    item = Item("i", "What did the mill grind?", ("barley",))
    drafts = [draft("**Barley** [1]."), draft("barley", refused=True), draft("barley", well_formed=False)]
    assert [is_correct(item, one) for one in drafts] == [True, False, False]
