import type { Meaning } from "../words/StatusWord.tsx"

/** A node as it is drawn. */
export interface Drawn {
  readonly id: string
  readonly title: string
  /** For its hint, where the title is shortened. */
  readonly fullTitle?: string
  readonly lines: ReadonlyArray<string>
  readonly meaning: Meaning
  /** The ids of what is part of it: a selection of one of them is a selection of it. */
  readonly parts: ReadonlyArray<string>
}

export interface DrawnEdge {
  readonly id: string
  readonly source: string
  readonly target: string
  readonly label: string
  /** Dashed: a way that took time, or may be taken. */
  readonly isDashed: boolean
}

export interface FlowProps {
  readonly label: string
  readonly nodes: ReadonlyArray<Drawn>
  readonly edges: ReadonlyArray<DrawnEdge>
  readonly selection: string | undefined
  readonly onSelect: (id: string | undefined) => void
}
