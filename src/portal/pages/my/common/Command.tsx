import { CopyAs } from "../../../shared/words/CopyAs.tsx"
import styles from "./Command.module.css"

/** The page as a command, on screens where somebody has a shell. */
export const Command = ({ address }: { readonly address: string }) => (
  <div className={styles.command}>
    <CopyAs address={address} />
  </div>
)
