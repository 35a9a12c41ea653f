import { PageHeader } from "../../shared/page/PageHeader.tsx"

const MyKeyPage = () => <PageHeader title="Key" />

export default MyKeyPage
