import { CodeBlock } from "./CodeBlock.tsx"
import { countText } from "./format.ts"

interface Props {
  readonly value: unknown
  readonly label: string
}

const mostCharacters = 200_000

/** JSON as text. What is too long to read is cut, and the copy has what is shown. */
export const JsonView = ({ label, value }: Props) => {
  const text = JSON.stringify(value, null, 2) ?? "null"
  return (
    <>
      <CodeBlock text={text.slice(0, mostCharacters)} label={label} />
      {text.length > mostCharacters && <p>The first {countText(mostCharacters)} characters are shown.</p>}
    </>
  )
}
