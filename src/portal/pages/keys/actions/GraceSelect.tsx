import { LazySelect } from "../../../shared/fields/LazySelect.tsx"

const hour = 3_600

const choices = [
  { value: "0", label: "at once" },
  { value: String(hour), label: "1 hour" },
  { value: String(24 * hour), label: "1 day" },
  { value: String(7 * 24 * hour), label: "7 days" },
  { value: String(30 * 24 * hour), label: "30 days" }
]

/** Nobody can give back the old secret, so a rotation at once is confirmed by typing a name. */
export const atOnceSentence = "Whoever has the old secret is refused until the new one is put in place."

export const usualGrace = 24 * hour

interface Props {
  readonly value: number
  readonly onChange: (seconds: number) => void
}

/** How long the old secret works beside the new one. */
export const GraceSelect = ({ onChange, value }: Props) => (
  <LazySelect
    label="The old secret stops working"
    description="Until then both work, so that nobody is cut off while the new one is put in place."
    data={choices}
    value={String(value)}
    onChange={(next) => next !== null && onChange(Number(next))}
    allowDeselect={false}
    maw={320}
  />
)
