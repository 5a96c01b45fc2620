"""Read which option of a multiple-choice question a final answer names.

Forms are tried in this order: a declaration (`Answer: B`), a label alone or at the beginning, a label within a sentence
(`option B`), and an option's text. If one form names two options, there is no answer, except that the last of two
declarations counts. Options that the answer denies, in English, Korean or Chinese, do not count.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ragbed.strategies.normalizing import EDGE, match_option_text, straighten
from ragbed.strategies.reading import fold, read_answer, strip_citations

Options = Sequence[tuple[str, str]]

_BOXED = re.compile(r"\\boxed")
_MARKUP = re.compile(r"[*_`$✓✔✅☑👉]|\\(?:text(?:bf|rm|it)?|math(?:rm|bf)|[()\[\]])|</?[A-Za-z]{1,12}>")
_SPACES = re.compile(r"[^\S\n]+")
_LINE_MARK = re.compile(r"^(?:#{1,6}|[-•>]) ", re.MULTILINE)
_LINES = re.compile(r" ?\n[ \n]*")
# Every repetition is bounded, and spaces are single, so that matching takes linear time.
_OPEN, _CLOSE = r"[(\[{<'\" ]{0,4}", r"[)\]}>'\" ]{0,4}"
_FOREIGN_ANSWER = (
    r"(?:(?<!\w)(?:antwort|lösung|wahl|réponse|choix|respuesta|risposta|resposta|ответ|відповідь|antwoord|svaret|svar"
    r"|odpowiedź|cevap|yanıt|đáp án|jawaban|উত্তর|उत्तर|الإجابة|الجواب|คําตอบ)"
    r"(?: (?:correcta?|correcte|corretta|correta|richtig|juste))?"
    r"(?: ?(?:[.:=→\n–—-]|->)[: \n]{0,3}| (?:ist|lautet|wäre|est|serait|es|sería|è|é|is|är|er|jest|to|adalah|là|คือ)"
    r"(?: (?:also|daher|somit|donc|entonces|quindi|então))?[: ]{1,3}| )"
    r"(?:(?:die|der|das|la|le|el|il|lo|a|o|l')? ?(?:option|antwort|buchstabe|opción|opção|opzione|lettre|letra"
    r"|réponse|вариант|буква) |(?:die|la|le|el|il) )?"
    r"|(?:答え|正解|解答|回答)(?:は|[是为為])?[: \n]{0,3})")
_DECLARES = (
    r"(?:(?<![a-z])ans(?:wer)?['\"]?(?:(?: \w{1,20}){0,5}? ?(?:\bis\b|\bbe\b|\bwas\b|[.:=→\n–—-]|->)[: \n]{0,3}| )"
    r"(?:(?:clearly|therefore|thus) )?"
    rf"|(?<![a-z])(?<!not )correct ?[:=] ?|{_FOREIGN_ANSWER}"
    r"|(?:정답|답[안변]?)(?:은|는)?[: \n]{0,3}|답안?으로[: ]{0,2}"
    r"|(?:答案|答)(?:应该|應該|应|應)?(?:是|为|為)?[: \n]{0,3}|[故应應](?:选|選)[择擇]?[: ]{0,2})"
    r"(?:(?:the )?(?:correct )?(?:option|choice|letter|选项|選項|보기)[: ]{0,2})?")
_NAMES = (r"(?:(?<![a-z])(?:option|choice|letter)(?: is)?[: ]{0,2}|选项 ?|選項 ?|[选選][择擇]? ?|보기 ?"
          r"|(?<!\w)(?:opción|opção|opzione|optie|вариант) |(?<!\w)(?:wähle|choisis|elijo|escolho|scelgo|выбираю) "
          r"|(?<![a-z])(?:choose|pick|select|go with) )")
_CONCLUDES = (r"(?:(?<![a-z])(?:(?:is|be|it's|so|thus|hence|therefore)[,:]?|(?:wrong|incorrect|false|out|eliminated),)"
              r"|=>|->|→) ?")
_LEAVES = (r"(?<![a-z])(?:leav(?:es|ing)(?: us)?(?: with)?|left with|remaining(?: option| choice)? is)"
           r"(?: only| just)?:? (?:(?:the )?(?:option|choice|answer|letter) )?")
_BEFORE_RIGHT = r"(?:^|[.,:;!?] |(?<![a-z])(?:that|think|believe|so|and|but|only|thus|hence|therefore|since|because) )"
_RIGHT = (r" (?:remains(?![a-z])|is left(?![a-z])|(?:is|would be|must be|has to be|seems|looks)(?: to be)? (?:the )?"
          r"(?:(?:most|best|only) )?"
          r"(?:correct|right|true|best|answer|likely|appropriate|suitable|one|my (?:answer|choice|pick))(?![a-z]))")
# What may come before and after a label at the beginning of an answer.
_HEDGES = (
    r"(?:(?:well|sure|ok(?:ay)?|yes|hmm|so|thus|hence|therefore|clearly|obviously|surely|perhaps|maybe|definitely"
    r"|certainly|(?:most |very )?(?:probably|likely)|without a doubt|final|result|conclusion|verdict|solution|response"
    r"|selected|(?:my )?(?:guess|pick|vote)|(?:i|we)(?:'d| would|'ll| will)? (?:think|believe|guess|say|answer|get"
    r"|vote(?: for)?|opt for|settle on|go with|lean(?: towards?)?)(?: it(?:'s| is))?|(?:i am |i'm )?(?:going with"
    r"|opting for|leaning(?: towards?)?)|(?:it )?(?:looks|seems)(?: like| to be)?|(?:this |that )(?:gives|leaves)"
    r"|leaving)[,:!.]? )")
_BEHIND = (r"(?:[.!]?$|,? ?(?:because|since|as|due to)\b|,? ?(?:for sure|of course|it is|(?:most )?(?:probably|likely)"
           r"|obviously|definitely|certainly|clearly|i(?:'d)? (?:think|believe|guess|say))[.!]?$)")
_ENDING = r"(?:번|입니다|이다|이에요|예요|です|[选選]?[项項])?"
_NEGATION = re.compile(r"(?<![a-z])(?:not|never|neither|nor|cannot|except|eliminate|rules? out)(?![a-z])|n't(?![a-z])"
                       r"|[不非未没沒别別勿][会會能应應该該可是要选選择擇取(\[{<'\" ]{0,8}\Z", re.IGNORECASE)
_DISMISSED = re.compile(r"[)\]}'\"]{0,3}(?: (?:(?:is|are|was|can|could|does|would|seems|looks)(?: also| clearly)? ?"
                        r"(?:not|n't|incorrect|wrong|false|ruled|eliminated|out)|cannot|isn't|can't|doesn't)"
                        r"| ?번?[이가은는도]? ?(?:아[니닌닙님]|틀[렸리린림립]|오답)"
                        r"| ?(?:では|じゃ)(?:な[いく]|ありません)| ?は(?:誤り|間違い|不正解)"
                        r"| (?:ist|est|n'est|es|non è|no es) (?:nicht|pas|falsch|faux|fausse|incorrect)"
                        r"| ?[项項]?(?:[是并並肯定]{0,2}[不错錯]|被?排除))", re.IGNORECASE)
_YES = r"(?:yes|right|correct|true|正确|正確|[对對]|맞음|맞[다습])"
_NO = r"(?:no|not|wrong|incorrect|false|不正确|不正確|不[对對]|[错錯]|틀림|틀[렸립린])"
_YES_OR_NO = re.compile(f"{_YES}|{_NO}", re.IGNORECASE)
_WORD_GOES_ON = re.compile(r"[+#]|'[^\W\d_]|[-–./&]\w|,\d|%")
_WORD = re.compile(r" ([^\W\d_]+)")
_ARTICLES = frozenset("ai")
_NEVER_AFTER_AN_ARTICLE = frozenset(
    ("because", "since", "as", "for", "due", "which", "is", "was", "according", "from", "in", "with", "by", "on", "and",
     "or", "but", "not"))
_ANSWERING = frozenset(
    ("the", "my", "final", "correct", "answer", "option", "choice", "is", "정답", "정답은", "답", "答案", "答案是"))
_MAX_MARKS = 20  # most characters that may surround an option's text
_MAX_ASIDE = 400  # longest text, in characters, in which `(B)` alone names an option
_MAX_END = 20_000  # of a longer text, only this many characters at each end are read


def read_choice(text: str, options: Options) -> str | None:
    """Return the label of the option that a final answer names; None if it names none, or more than one.

    It recognizes a label alone, also in brackets, emphasis or tags, in lower case or full width; `Answer: B` and its
    equivalents in many languages; `B. text`; `option B`; `B because`; and an option's own text. `A` and
    `I` as words of a sentence are not labels. It takes linear time. Of more than 40,000 characters, only the first and
    last 20,000 are read.

    Args:
        options: label and text of each.
    """
    if not options:
        return None
    forms = _forms(tuple(label for label, _ in options))
    final = straighten(strip_citations(_ends(read_answer(text)[0])))
    bare = _MARKUP.sub("", _BOXED.sub(" answer: ", _ends(final)))  # folding may turn one character into eighteen
    said = _LINE_MARK.sub("", _LINES.sub("\n", _SPACES.sub(" ", bare)).strip())
    whole = forms.label(said.strip(" .,:;!?()[]{}<>'\"。、"))
    if whole is not None:
        return whole
    lines = {fold(line) for line in said.split("\n")}
    with_own_text = {label for label, text in options if text.strip() and fold(f"{label} {text}") in lines}
    for found in (forms.declared(said, options), forms.alone(said), with_own_text,
                  forms.one_by_one(said, options), forms.begun(said, options), forms.hedged(said, options),
                  forms.in_passing(said, options)):
        if found:
            return next(iter(found)) if len(found) == 1 else None
    return match_option_text(said, options)


def is_only_choice(text: str, options: Options) -> bool:
    """Return whether a text has nothing but options: their texts, labels, and words such as `Answer:`."""
    said = f" {fold(strip_citations(text))} "
    for name in sorted((fold(part) for option in options for part in option), key=len, reverse=True):
        said = said.replace(f" {name} ", "  ") if name else said
    return _ANSWERING.issuperset(said.split())


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _MAX_END else f"{text[:_MAX_END]}\n{text[-_MAX_END:]}"


def _line(said: str, start: int, options: Options) -> str:
    """Return the rest of the line; empty if it is too long for an option's text."""
    end = start + max(len(straighten(text)) for _, text in options) + _MAX_MARKS
    line, ended, _ = said[start:end].partition("\n")
    return line if ended or end >= len(said) else ""


class _Forms:
    def __init__(self, labels: tuple[str, ...]) -> None:
        keys = [straighten(label) for label in labels]
        folded = [key.casefold() for key in keys]
        known = {key.casefold(): label for key, fold_, label in zip(keys, folded, labels, strict=True)
                 if folded.count(fold_) == 1}
        self.labels = known | dict(zip(keys, labels, strict=True))
        any_ = "(?:" + "|".join(map(re.escape, sorted(keys, key=len, reverse=True))) + f")(?![{EDGE}])"
        one = any_.replace("?:", "?P<label>", 1)
        either = re.MULTILINE | re.IGNORECASE
        self.declares = re.compile(f"{_DECLARES}{_OPEN}{one}", either)
        self.following = re.compile(rf"{_CLOSE}\??(?:,? ?(?:or|and|oder|und|ou|et|o|y|или|и|및|또는|或|和)|[,/&])? ?"
                                    rf"{_OPEN}{one}{_CLOSE}(?:$|[.,;!?/&]|or\b|and\b)", either)
        self.line = re.compile(rf"^{_OPEN}{one}{_CLOSE}{_ENDING}[.,:;!?。]?{_CLOSE}$", either)
        self.judged = re.compile(
            rf"(?:^|(?<=[.,;!?] )){_OPEN}{one}(?:[)\]}}]?[.:]|[)\]}}]| [-–=]) ?(?:(?P<yes>{_YES})|{_NO})"
            rf"(?= ?(?:[.,;:!。]|$|(?:because|since|as)\b|[(\[]?{any_}[)\].:]))", either)
        self.begins = re.compile(
            rf"^[(\[{{<'\"]{{0,3}}{one}(?:[)\]}}>'\"]{{1,3}}[.:]?|[.:、,;](?=[^!-~]|$)|(?= [-–] ))", either)
        self.hedges = re.compile(rf"^{_HEDGES}{{0,3}}{_OPEN}{one}(?={_CLOSE}(?:{_BEHIND}"
                                 rf"|,? (?:rather than|instead of|over) (?:option )?{_OPEN}{any_}{_CLOSE}[.!]?$))",
                                 either)
        self.leaves = re.compile(rf"(?i:{_LEAVES}){_OPEN}{one}"
                                 rf"(?={_CLOSE}(?:[.!?]?{_CLOSE}$|,?(?i: as | since| because)))", re.MULTILINE)
        self.names = re.compile(_NAMES + _OPEN + one, either)
        self.concludes = re.compile(rf"(?i:{_CONCLUDES}){_OPEN}{one}(?={_CLOSE}[.!]?{_CLOSE}$)", re.MULTILINE)
        self.contrasts = re.compile(
            rf"(?:(?i:(?<![a-z])not ){_OPEN}{any_}{_CLOSE}(?:,?(?i: but (?:rather |it is )?)|[.;] )"
            rf"|不是{_OPEN}{any_}{_CLOSE},? ?而?(?:应该|應該|应|應)?是"
            rf"|{any_}{_CLOSE}번?[이가]? ?아니[라고],? ?)"
            rf"{_OPEN}{one}(?={_CLOSE}(?:{_ENDING}[.!。]?{_CLOSE}$|,?(?i: since| because)))", re.MULTILINE)
        self.right = re.compile(rf"(?i:{_BEFORE_RIGHT})[(\[]?{one}[)\]]?(?i:{_RIGHT})", re.MULTILINE)
        self.bracketed = re.compile(rf"[(\[{{]{one}[)\]}}]", re.MULTILINE)

    def label(self, text: str) -> str | None:
        return self.labels.get(text) or self.labels.get(text.casefold())

    def declared(self, said: str, options: Options) -> set[str | None]:
        """Return the last declared label."""
        last = None
        for found in self.declares.finditer(said):
            before = said[found.start():found.start("label")]
            stands = _stands(said, found)
            if not stands:
                rest = _line(said, found.end(), options).strip(" .")
                stands = not rest[:1].islower() and rest in {straighten(text).strip(" .") for _, text in options}
            if stands and not _NEGATION.search(before) and not _DISMISSED.match(said, found.end()):
                last = found
        return set() if last is None else {self._lone(said, last, options)}

    def alone(self, said: str) -> set[str | None]:
        """Return labels that are alone on a line."""
        return {self.label(found["label"]) for found in self.line.finditer(said)}

    def one_by_one(self, said: str, options: Options) -> set[str | None]:
        """Return the labels that the text calls right, if it judges each label right or wrong; None if all are
        wrong."""
        found = [] if any(_YES_OR_NO.fullmatch(text.strip()) for _, text in options) else [*self.judged.finditer(said)]
        return {self.label(one["label"]) for one in found if one["yes"]} or ({None} if found else set())

    def begun(self, said: str, options: Options) -> set[str | None]:
        """Return the labels at the beginning of lines, if the first line begins with one."""
        found = [one for one in self.begins.finditer(said) if _stands(said, one)]
        if not found or found[0].start() > 0:
            return set()
        return {self._lone(said, found[0], options), *(self.label(one["label"]) for one in found)}

    def hedged(self, said: str, options: Options) -> set[str | None]:
        """Return labels that share a line only with a reason or a hedge."""
        return {self._lone(said, found, options) for found in self.hedges.finditer(said) if _stands(said, found)}

    def in_passing(self, said: str, options: Options) -> set[str | None]:
        """Return labels that occur as `option B`, in a conclusion or in brackets, unless the text rejects them."""
        patterns = [self.names, self.concludes, self.leaves, self.contrasts, self.right]
        if len(said) <= _MAX_ASIDE:
            patterns.append(self.bracketed)
        return {self._lone(said, found, options) for pattern in patterns for found in pattern.finditer(said)
                if _stands(said, found, after_name=pattern is self.names)
                and (pattern in (self.contrasts, self.leaves)
                     or not _NEGATION.search(said[max(0, found.start() - 12):found.start("label")]))
                and not _DISMISSED.match(said, found.end("label"))}

    def _lone(self, said: str, found: re.Match[str], options: Options) -> str | None:
        """Return the label found; None if another label follows, as in `A or B`, or another option's text does."""
        label, several = self.label(found["label"]), self.following.match(said, found.end("label"))
        alone = several is None or self.label(several["label"]) == label
        rest = fold(_line(said, found.end(), options))
        texts = {other == label for other, text in options if rest and fold(text) == rest}
        return label if alone and texts != {False} else None


def _stands(said: str, found: re.Match[str], after_name: bool = False) -> bool:
    """Return whether a match is a label, rather than part of a word or an article."""
    label, end = found["label"], found.end("label")
    if _WORD_GOES_ON.match(said, end):
        return False
    word = _WORD.match(said, end) if label.casefold() in _ARTICLES else None
    if word is None or not word[1].isascii():
        return True
    return label.isupper() and (after_name or word[1].lower() in _NEVER_AFTER_AN_ARTICLE)


_forms = lru_cache(maxsize=64)(_Forms)
