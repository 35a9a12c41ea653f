import { ForeignText } from "../../shared/foreign/ForeignText.tsx"
import styles from "./ExceptionMessage.module.css"

/** Shows the message of an exception, or the beginning of it, as it was thrown. */
export const ExceptionMessage = ({ children }: { readonly children: string }) => (
  <p className={styles.message}>
    <ForeignText>{children}</ForeignText>
  </p>
)
