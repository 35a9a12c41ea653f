import { bytesText, countedText } from "../../../shared/words/format.ts"
import { heldAfter } from "./align.ts"
import styles from "./Bench.module.css"

interface Props {
  readonly chunks: ReadonlyArray<string>
  readonly sent: ReadonlyArray<string>
}

/** Piece by piece: what arrived, what was sent for it, and how much waits because it may become a value. */
export const StreamPieces = ({ chunks, sent }: Props) => {
  const held = heldAfter(chunks, sent)
  const most = Math.max(1, ...held)
  const rest = sent.slice(chunks.length).join("")
  return (
    <details>
      <summary>
        {countedText(chunks.length, "piece")}; at most {bytesText(Math.max(0, ...held))} held back
      </summary>
      <table className={styles.chunks}>
        <thead>
          <tr>
            <th scope="col">Arrives</th>
            <th scope="col">Is sent</th>
            <th scope="col">Held back</th>
          </tr>
        </thead>
        <tbody>
          {chunks.map((chunk, place) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the place is what tells pieces apart
            <tr key={place}>
              <td dir="auto">{chunk}</td>
              <td dir="auto">{sent[place] ?? ""}</td>
              <td>
                <span
                  className={styles.held}
                  style={{ width: `${((held[place] ?? 0) / most) * 60}px` }}
                  aria-hidden="true"
                />
                {bytesText(held[place] ?? 0)}
              </td>
            </tr>
          ))}
          {rest !== "" && (
            <tr>
              <td>the end</td>
              <td dir="auto">{rest}</td>
              <td>{bytesText(0)}</td>
            </tr>
          )}
        </tbody>
      </table>
    </details>
  )
}
