import { Fragment } from "react"
import { When } from "./When.tsx"

const time = /(\d{4}-\d\d-\d\dT[\d:.]+Z)/

/** A sentence of the server. Its times are shown as times are everywhere else. */
export const Sentence = ({ text }: { readonly text: string }) =>
  text.split(time).map((part, place) =>
    // `split` returns what the expression matched at every second place
    place % 2 === 1 ? <When key={part} at={part} /> : <Fragment key={part}>{part}</Fragment>
  )
