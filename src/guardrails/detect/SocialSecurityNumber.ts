import { type Detector, none, wait } from "./Detector.ts"
import { isDigit } from "./lexing/Characters.ts"
import type { NormalText } from "./lexing/NormalText.ts"
import { endOfNumber, isDash, isJoinedBefore } from "./Numbers.ts"

/** `d` stands for a digit. */
const shape = "ddd-dd-dddd"

export const socialSecurityNumber: Detector = {
  kind: "SSN",
  canStart: isDigit,
  matcher: (text) => ({ match: (start) => match(text, start) })
}

const match = (text: NormalText, start: number): number => {
  if (isJoinedBefore(text, start, "shape")) return none
  const windowEnd = text.windowEnd(start)
  const isOpen = text.isOpen(start)
  for (let place = 0; place < shape.length; place++) {
    if (start + place >= windowEnd) return isOpen ? wait : none
    const code = text.code(start + place)
    if (shape[place] === "d" ? !isDigit(code) : !isDash(code)) return none
  }
  return endOfNumber(text, start + shape.length, windowEnd, isOpen, "shape")
}
