import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import styles from "./ExceptionMessage.module.css"

/** What an exception said, or the beginning of it. */
export const ExceptionMessage = ({ children }: { readonly children: string }) => (
  <p className={styles.message}>
    <ForeignText>{children}</ForeignText>
  </p>
)
