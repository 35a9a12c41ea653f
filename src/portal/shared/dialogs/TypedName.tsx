import { TextInput } from "@mantine/core"
import { shownText } from "../foreign/marks.ts"

interface Props {
  readonly name: string
  readonly typed: string
  readonly onType: (typed: string) => void
}

/** Nobody can type the marks of a name. */
export const isTyped = ({ name, typed }: Pick<Props, "name" | "typed">): boolean =>
  typed === name || typed === shownText(name)

/** Confirms what cannot be taken back. */
export const TypedName = ({ name, onType, typed }: Props) => (
  <TextInput
    label={`Type “${shownText(name)}” to confirm`}
    value={typed}
    autoComplete="off"
    onChange={({ currentTarget }) => onType(currentTarget.value)}
    data-autofocus
  />
)
